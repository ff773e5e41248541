"""Linear attention: heads whose state decays at a fixed rate."""

from collections.abc import Iterable
from typing import Annotated, Literal

from specs.base.base import Component, Fault, RuleContext, Slot, Spec, Width
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import PartContext
from specs.kinds.activation import Activation
from specs.kinds.attention import Heads
from specs.kinds.mixer import MixerKind, state_text
from specs.kinds.norm import Norm, RMSNorm

Decay = Annotated[Component, Slot("decay")]


@register("decay")
class Slopes(Component):
    """`exp(-slope)`, with the slope `2 ** (-8 * h / heads)` of head h, from 1, times a factor that falls from 1 in the first
    layer to nearly 0 in the last, `1 - layer / (layers - 1) + 1e-5` (MiniMax-01). Where `heads` is a power of 2, the slopes
    are those of ALiBi."""

    kind: Literal["slopes"] = "slopes"


@register("decay")
class Retention(Component):
    """`1 - 2 ** (-5 - h)` of head h, from 0, in every layer (RetNet: Sun et al., 2023)."""

    kind: Literal["retention"] = "retention"


class OutputNorm(Spec):
    """Norm of the outputs of the heads, before the gate."""

    norm: Norm = RMSNorm()
    """Norm of the outputs."""
    over: Annotated[
        Literal["width", "head"],
        ValueDescriptions(
            {
                "width": "One norm over the concatenated heads (MiniMax-01).",
                "head": "One norm of the width of a head, shared by all heads (RetNet).",
            }
        ),
    ] = "width"
    """Span of the norm: all heads together, or a head."""


@register("mixer")
class LinearAttention(MixerKind):
    """Linear attention with a fixed decay per head: lightning attention (MiniMax-01: MiniMax, 2025), or retention without its
    rotation (RetNet: Sun et al., 2023)."""

    kind: Literal["linear_attention"] = "linear_attention"
    heads: Heads
    """Number of heads, each with a state of its own."""
    key_width: Annotated[Width, Role.WIDTH]
    """Width of the queries and keys of one head."""
    value_width: Annotated[Width, Role.WIDTH]
    """Width of the values of one head: its state is a matrix, `key_width` x `value_width`."""
    activation: Activation = "silu"
    """Activation of the queries, keys and values (RetNet: `identity`)."""
    decay: Decay = Slopes()
    """Factor by which the state of each head shrinks with every token; it is not trained."""
    output_norm: OutputNorm = OutputNorm()
    """Norm of the outputs."""
    gate: Activation = "sigmoid"
    """Activation of the gate, a projection of the input that multiplies the normalized outputs (RetNet: `silu`)."""

    def details(self, context: PartContext) -> list[str]:
        return [state_text(self.heads, self.key_width, self.value_width), f"decay: {self.decay.kind}"]

    def why_insensitive(self, width: int) -> str:
        over = self.value_width if self.output_norm.over == "head" else self.heads * self.value_width
        return self.output_norm.norm.why_insensitive(over)

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from (fault.under("decay") for fault in self.decay.faults(context))
        yield from (fault.under("output_norm", "norm") for fault in self.output_norm.norm.faults(context))
