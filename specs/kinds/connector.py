"""Connectors: from the vectors of one stack to embeddings among another's tokens."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, Self

from pydantic import Field

from specs.base.base import Component, Fault, OmitDefault, RuleContext, Slot, Spec, Width
from specs.base.registry import interface, register
from specs.base.roles import Role
from specs.base.words import PartContext, Step
from specs.kinds.activation import ACTIVATION_TITLES, Activation
from specs.kinds.norm import Norm


class DeepStack(Spec):
    """Vectors of earlier layers of the images, added to the stream of tokens after the first layers of the decoder (Meng et al.,
    2024)."""

    layers: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(strict=False, min_length=1)]
    """Layers of the images, by number from 0: the vectors after the first of them are added after the first layer of the decoder,
    and so on, each by a connector of its own (Qwen3-VL: [5, 11, 17])."""
    norm: Annotated[Norm | None, OmitDefault()] = None
    """Norm of the vectors of these connectors, after the vectors of a square are joined. Default: none."""


@interface("connector")
class ConnectorKind(Component):
    """Interface of all kinds of connector: the parts that they share.

    The vectors of an image replace the embeddings of the placeholder tokens, in order.
    """

    token: Annotated[int, Field(ge=0)]
    """Id of the placeholder token, of which a prompt has one for every vector of its images."""
    class_token: Annotated[bool, OmitDefault()] = False
    """Whether the vectors of class token and registers are kept, before the vectors of the patches."""
    pool: Annotated[int, Field(ge=1, le=16), OmitDefault()] = 1
    """Side of the squares of patches whose vectors are averaged to one, before the norm (Gemma 3)."""
    shuffle: Annotated[int, Field(ge=1, le=16), OmitDefault()] = 1
    """Side of the squares of patches whose vectors are joined to one, `shuffle ** 2` as wide (pixel shuffle: Idefics 3,
    SmolVLM)."""
    norm: Annotated[Norm | None, OmitDefault()] = None
    """Norm of the vectors before any are joined. Default: none."""
    joined_norm: Annotated[Norm | None, OmitDefault()] = None
    """Norm of what is projected, after the vectors of a square are joined (InternVL). Default: none."""
    deepstack: Annotated[DeepStack | None, OmitDefault()] = None
    """Vectors of earlier layers of images of any size, added after the first layers of the decoder. Default: none."""

    @property
    def deep_count(self) -> int:
        """The number of layers of images whose vectors are added after layers of the decoder."""
        return 0 if self.deepstack is None else len(self.deepstack.layers)

    @property
    def square(self) -> int:
        """Side of the squares of patches that give one vector."""
        return self.pool * self.shuffle

    def vector_count(self, patches: int, others: int) -> int:
        """The number of vectors that stand for an image, from its numbers of patches and of other vectors."""
        return patches // self.square**2 + (others if self.class_token else 0)

    def of_fewer_vectors(self, count: int) -> Self:
        """The same connector with at most ``count`` vectors of an image, if it fixes their number."""
        return self

    @property
    def takes_any_size(self) -> bool:
        """Whether images may have any size, whose patches come in one sequence."""
        return True

    def steps(self, context: PartContext) -> Iterator[Step]:
        """The steps from the joined vectors of patches to the width of the tokens."""
        yield Step(self.heading, "", ("connector",))

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        vocabulary = context.vocab_size
        if vocabulary is not None and self.token >= vocabulary:
            yield Fault(
                ("token",),
                f"must be below vocab_size, which is {vocabulary}",
                self.token,
                f"Use a token below {vocabulary}.",
            )
        for name, size in (("pool", self.pool), ("shuffle", self.shuffle)):
            if self.class_token and size > 1:
                yield Fault(
                    (name,),
                    "joins patches, and a class token is none",
                    size,
                    f"Set class_token: false, or {name}: 1.",
                )


Connector = Annotated[ConnectorKind, Slot("connector")]


@register("connector")
class LinearConnector(ConnectorKind):
    """One linear projection to the width of the tokens (Idefics 3, SmolVLM, Gemma 3, PaliGemma)."""

    kind: Literal["linear"] = "linear"
    bias: bool = True
    """Whether the projection adds a bias."""

    def steps(self, context: PartContext) -> Iterator[Step]:
        yield Step("Connector", "", (f"{context.read_width:,} → {context.width:,}",))


@register("connector")
class MlpConnector(ConnectorKind):
    """Two linear projections with an activation between (LLaVA 1.5: Liu et al., 2023)."""

    kind: Literal["mlp"] = "mlp"
    hidden: Annotated[Width | None, Role.WIDTH] = None
    """Width between the two projections. Default: `d_model`."""
    activation: Activation = "gelu"
    """Activation between the two projections."""
    bias: bool = True
    """Whether the projections add biases."""

    def steps(self, context: PartContext) -> Iterator[Step]:
        hidden = self.hidden or context.width
        up, down = f"{context.read_width:,} → {hidden:,}", f"{hidden:,} → {context.width:,}"
        yield Step("Connector", "", (up, ACTIVATION_TITLES[self.activation], down))
