"""Embeddings: from what goes into a model, tokens, an image or a sound, to vectors of width d_model."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.activation import Activation
from specs.base import Component, Fault, Frame, PositiveFloat, Probability, Slot, Spec, Width
from specs.norm import Norm
from specs.registry import register

Embedding = Annotated[Component, Slot("embedding")]


class EmbeddingKind(Component):
    """What every kind of embedding answers.

    ``input_name`` is what clients call its input, ``takes_tokens`` says that the input is token ids.
    """

    input_name: ClassVar[str]
    takes_tokens: ClassVar[bool] = False

    @property
    def fixed_length(self) -> int | None:
        """How many vectors every input comes to, where the embedding alone decides it."""
        return None

    def input_shape(self, context_length: int | None) -> tuple[int, ...]:
        """The sizes of one input, for embeddings that take no tokens."""
        raise NotImplementedError

    def position_width(self, d_model: int) -> int:
        """The width of the vectors that positions are added to."""
        return d_model


class Projection(Spec):
    """A matrix from the embedding's width to d_model.

    It stands ``last`` (ALBERT, ELECTRA), or ``first``: before token types, positions and norm (OPT-350m).
    """

    bias: bool = True
    place: Literal["last", "first"] = "last"


@register("embedding", default=True)
class Tokens(EmbeddingKind):
    """Token ids: token * scale + token type + position, then norm, then projection.

    ``width`` is the width of the table where it differs from d_model (ALBERT, ELECTRA): a projection follows,
    with a bias unless ``projection`` says otherwise.  ``scale`` multiplies the token vectors.  ``token_types``
    counts segment embeddings (BERT: 2).
    """

    kind: Annotated[Literal["tokens"], Field(exclude=True)] = "tokens"
    token_types: Annotated[int, Field(ge=0, le=2**16)] = 0
    width: Width | None = None
    projection: Projection | None = None
    scale: PositiveFloat | Literal["sqrt_d_model"] | None = None
    norm: Norm | None = None
    dropout: Probability = 0.0

    input_name: ClassVar[str] = "input_ids"
    takes_tokens: ClassVar[bool] = True

    def table_width(self, d_model: int) -> int:
        """The width of the token table."""
        return self.width or d_model

    def position_width(self, d_model: int) -> int:
        first = self.projection is not None and self.projection.place == "first"
        return d_model if first else self.table_width(d_model)


@register("embedding")
class Patches(EmbeddingKind):
    """An image as a sequence of its square patches, each through one matrix (ViT: Dosovitskiy et al., 2020).

    The image is ``image_size`` high and wide; what is left of it beside whole patches is not seen.  With
    ``class_token`` a trained vector goes before the patches.  The number of vectors is the context length.
    """

    kind: Literal["patches"] = "patches"
    image_size: Width
    patch_size: Width
    channels: Width = 3
    class_token: bool = True
    bias: bool = True
    dropout: Probability = 0.0

    input_name: ClassVar[str] = "pixel_values"

    @property
    def fixed_length(self) -> int:
        return (self.image_size // self.patch_size) ** 2 + self.class_token

    def input_shape(self, context_length: int | None) -> tuple[int, ...]:
        return self.channels, self.image_size, self.image_size

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if self.patch_size > self.image_size:
            yield Fault(
                ("patch_size",),
                f"must not exceed image_size, which is {self.image_size}",
                self.patch_size,
                f"{self.image_size} or less would work",
            )


@register("embedding")
class Spectrogram(EmbeddingKind):
    """A sound as its log-mel spectrogram, through two convolutions over time (Whisper: Radford et al., 2022).

    An input has ``mel_bins`` rows and ``stride`` columns for each vector of the context; the second convolution
    moves by ``stride``.
    """

    kind: Literal["spectrogram"] = "spectrogram"
    mel_bins: Width
    kernel: Annotated[int, Field(gt=0, le=2**10)] = 3
    stride: Annotated[int, Field(gt=0, le=2**10)] = 2
    activation: Activation = "gelu"
    dropout: Probability = 0.0

    input_name: ClassVar[str] = "input_features"

    def input_shape(self, context_length: int | None) -> tuple[int, ...]:
        assert context_length is not None
        return self.mel_bins, self.stride * context_length

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if self.kernel % 2 == 0:
            yield Fault(
                ("kernel",),
                "must be odd, to have a middle",
                self.kernel,
                f"{self.kernel - 1} or {self.kernel + 1} would work",
            )
        if frame.context_length is None:
            yield Fault(
                ("kind",),
                f"needs a context_length: an input has {self.stride} columns for each of its vectors",
                self.kind,
                "add context_length: 1500 beside it",
            )
