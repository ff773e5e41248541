"""Embeddings of spectrograms of any length: frames of mel bins to vectors."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Dropout, Fault, PositiveFloat, RuleContext, Width
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import WIDTHS, PartContext, PositionStep, Step, plus
from specs.kinds.activation import ACTIVATION_TITLES, Activation
from specs.kinds.embedding import EmbeddingKind, InputPart, kernel_faults, scale_steps
from specs.kinds.norm import Norm, norm_steps
from specs.kinds.spectrogram import start_times

END_FRAMES: tuple[InputPart, InputPart] = (slice(None), slice(0, 1)), (slice(None), slice(-1, None))
"""The first and the last frame."""


class FramesKind(EmbeddingKind):
    """Interface of embeddings of spectrograms of any length, frames x features; a recording is padded at its end."""

    input_name: ClassVar[str] = "input_features"
    input_title: ClassVar[str] = "Log-mel spectrogram"

    @property
    def any_length(self) -> bool:
        return True

    @property
    def takes_mask(self) -> bool:
        return True

    @property
    def features(self) -> int:
        """The number of features of a frame."""
        raise NotImplementedError

    @property
    def step(self) -> int:
        """The number of frames from one vector to the next."""
        return 1

    def drawn_input(self, length: str, context_length: int | None) -> tuple[str | int, ...]:
        frames = length if self.step == 1 else f"({self.step:,} {length} {plus(1 - self.step)})"
        return frames, self.features

    def vector_names(self, count: int, column_seconds: float | None = None) -> list[str]:
        return start_times(count, self.step, column_seconds)

    def input_length(self, vectors: int) -> int:
        return (vectors - 1) * self.step + 1

    def vector_count(self, length: int) -> int:
        return -(-length // self.step)

    def input_shape(self, context_length: int | None) -> tuple[int, ...]:
        assert context_length is not None
        return self.input_length(context_length), self.features


@register("embedding")
class Frames(FramesKind):
    """Frames of a spectrogram of any length, each through a norm and a projection (wav2vec2-BERT: Barrault et al., 2023).

    A recording is padded at its end.
    """

    kind: Literal["frames"] = "frames"
    width: Width
    """Number of features of a frame (wav2vec2-BERT: 160, two times 80 mel frequency bins)."""
    norm: Norm | None = None
    """Norm of the features before the projection to `d_model`. Default: none."""
    dropout: Dropout = 0.0
    """Dropout probability on the embeddings during training."""

    @property
    def features(self) -> int:
        return self.width

    def steps(self, context: PartContext) -> Iterator[Step | PositionStep]:
        yield from norm_steps(self.norm)
        yield Step("Projection", "projection", (WIDTHS,))
        yield PositionStep()

    def ends(self, vectors: int) -> tuple[InputPart, InputPart]:
        return END_FRAMES


@register("embedding")
class SubsampledSpectrogram(FramesKind):
    """A log-mel spectrogram of any length, through strided convolutions over time and frequency and a projection
    (FastConformer: Rekesh et al., 2023).

    The first convolution reads the spectrogram; each further one is a convolution of every channel with its own kernel and
    a matrix between channels. A recording is padded at its end; frames of padding count as zeros.
    """

    kind: Literal["subsampled_spectrogram"] = "subsampled_spectrogram"
    mel_bins: Width
    """Number of mel frequency bins of a frame (Parakeet: 80 or 128)."""
    channels: Annotated[Width, Role.WIDTH] = 256
    """Number of channels of every convolution."""
    convolutions: Annotated[int, Field(gt=0, le=16)] = 3
    """Number of convolutions: together they take `stride ** convolutions` frames from one vector to the next (Parakeet: 8)."""
    kernel: Annotated[int, Field(gt=0, le=2**8)] = 3
    """Width of the kernels, in frames and bins. It must be odd."""
    stride: Annotated[int, Field(gt=0, le=2**8)] = 2
    """Step of the kernels, in frames and bins."""
    activation: Activation = "relu"
    """Activation of each convolution."""
    scale: PositiveFloat | Literal["sqrt_d_model"] | None = None
    """Factor on the projected vectors: a number, or `sqrt_d_model` (Conformer, Parakeet). Default: 1."""
    dropout: Dropout = 0.0
    """Dropout probability on the embeddings during training."""

    @property
    def features(self) -> int:
        return self.mel_bins

    @property
    def step(self) -> int:
        return int(self.stride**self.convolutions)

    @property
    def bins_left(self) -> int:
        """The number of bins after the last convolution."""
        return -(-self.mel_bins // self.step)

    def steps(self, context: PartContext) -> Iterator[Step | PositionStep]:
        details = f"kernel {self.kernel}", f"stride {self.stride}", "time and bins"
        activation = ACTIVATION_TITLES[self.activation]
        for index in range(self.convolutions):
            widths = f"{self.channels if index else 1:,} → {self.channels:,}"
            title = "Depthwise convolution and matrix" if index else "Convolution"
            yield Step(title, f"layers.{index}", (widths, *details, activation))
        yield Step("Projection", "projection", (WIDTHS,))
        yield from scale_steps(self.scale, context.width)
        yield PositionStep()

    @property
    def sees_order(self) -> bool:
        return True

    def ends(self, vectors: int) -> tuple[InputPart, InputPart] | None:
        return END_FRAMES if self.kernel // 2 < self.stride else None

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from kernel_faults(self.kernel)
