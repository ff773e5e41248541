"""Heads with an optional dense layer and norm before their output layer."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

from specs.base.base import (
    Fault,
    OmitDefault,
    RuleContext,
)
from specs.base.words import WIDTHS, Step
from specs.kinds.activation import ACTIVATION_TITLES, Activation
from specs.kinds.head import HeadKind
from specs.kinds.norm import Norm, norm_steps

if TYPE_CHECKING:
    from specs.kinds.vocabulary_heads import MaskedScores


class TransformingHead(HeadKind):
    """A head with an optional dense layer and norm before the output layer."""

    activation: Activation | None = None
    """Activation of a dense layer before the output layer (BERT: `tanh`). Default: no dense layer."""
    dense_bias: Annotated[bool, OmitDefault()] = True
    """Whether that dense layer adds a bias (ModernBERT: false)."""
    norm: Norm | None = None
    """Norm before the output layer, after the dense layer if there is one (ModernBERT, CLIP). Default: none."""

    def why_insensitive(self, width: int) -> str:
        return "" if self.norm is None else self.norm.why_insensitive(width)

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        return dense_layer_faults(self)


def dense_layer_faults(head: "TransformingHead | MaskedScores") -> Iterable[Fault]:
    """The settings of a dense layer in a head without one."""
    if head.activation is None and not head.dense_bias:
        yield Fault(
            ("dense_bias",),
            "belongs to a dense layer, which activation adds",
            False,
            "Add activation: (identity for none), or remove dense_bias.",
        )


def dense_width_faults(activation: Activation | None, width: int | None) -> Iterable[Fault]:
    """The width of a dense layer in a head without one."""
    if activation is None and width is not None:
        yield Fault(
            ("dense_width",),
            "belongs to a dense layer, which activation adds",
            width,
            "Add activation: (identity for none), or remove dense_width.",
        )


def dense_steps(head: "TransformingHead | MaskedScores") -> Iterator[Step]:
    """The dense layer, its activation and norm, each if present."""
    if head.activation is not None:
        yield Step("Dense", "dense", (WIDTHS, ACTIVATION_TITLES[head.activation]))
    yield from norm_steps(head.norm)
