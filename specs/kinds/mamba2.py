"""Mamba-2: heads whose state decays by one factor per token."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Fault, Multiplier, OmitDefault, PositiveFloat, RuleContext, Spec, Width
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import PartContext
from specs.kinds.activation import Activation
from specs.kinds.attention import Heads, divisors
from specs.kinds.mixer import MixerKind, convolution_text, state_text
from specs.kinds.short_convolution import KernelSize


class GatedNorm(Spec):
    """RMS norm of the outputs and the gate, with one statistic per group of heads."""

    eps: PositiveFloat = 1e-5
    """Number added to the mean square to avoid division by 0."""
    gate: Annotated[
        Literal["before", "after"],
        ValueDescriptions(
            {
                "before": "`norm(y * silu(gate))` (Mamba-2).",
                "after": "`norm(y) * silu(gate)`, as Falcon-H1 allows.",
            }
        ),
    ] = "before"
    """Whether the gate is applied before the norm or after it."""


class StepLimit(Spec):
    """Bounds of the step sizes, to which they are clamped."""

    least: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Smallest step size."""
    most: PositiveFloat | None = None
    """Largest step size. Default: unbounded."""


class Mamba2Multipliers(Spec):
    """Constant factors on the input and the output of Mamba-2, and on the parts of its input projection."""

    input: Multiplier = 1.0
    """Factor on the input of the input projection."""
    gate: Multiplier = 1.0
    """Factor on the projected gate (z)."""
    value: Multiplier = 1.0
    """Factor on the projected values (x), before the convolution."""
    key: Multiplier = 1.0
    """Factor on the projected keys (B), before the convolution."""
    query: Multiplier = 1.0
    """Factor on the projected queries (C), before the convolution."""
    step: Multiplier = 1.0
    """Factor on the projected step sizes (dt), before their bias."""
    output: Multiplier = 1.0
    """Factor on the result of the output projection."""


@register("mixer")
class Mamba2(MixerKind):
    """Mamba-2 (Dao and Gu, 2024): a short convolution, and heads whose state decays by one factor per token."""

    kind: Literal["mamba2"] = "mamba2"
    title: ClassVar[str] = "Mamba-2"
    heads: Heads
    """Number of heads."""
    head_dim: Annotated[Width, Role.WIDTH]
    """Width of the values of one head."""
    state_size: Annotated[Width, Role.WIDTH]
    """Width of the keys and queries (B and C): the state of a head is a matrix, `state_size` x `head_dim`."""
    groups: Heads = 1
    """Number of groups of heads with the same keys and queries. It must divide `heads`."""
    kernel_size: KernelSize = 4
    """Number of tokens that the convolution sees: a token and those before it."""
    activation: Activation = "silu"
    """Activation after the convolution."""
    bias: bool = False
    """Whether the input and output projections add a bias."""
    convolution_bias: bool = True
    """Whether the convolution adds a bias."""
    norm: GatedNorm | None = GatedNorm()
    """Norm of the gated outputs; `null` for the gate alone (Falcon-H1)."""
    step_limit: Annotated[StepLimit | None, OmitDefault()] = None
    """Bounds of the step sizes. Default: none."""
    multipliers: Mamba2Multipliers = Mamba2Multipliers()
    """Constant factors on the input, the parts of its projection, and the output (Falcon-H1). Default: 1."""

    @property
    def width(self) -> int:
        """The width of all heads together."""
        return self.heads * self.head_dim

    def details(self, context: PartContext) -> list[str]:
        shared = [] if self.groups == 1 else [f"{self.groups:,} groups"]
        states = state_text(self.heads, self.state_size, self.head_dim)
        return [states, *shared, convolution_text(self.kernel_size)]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.heads % self.groups:
            yield Fault(
                ("groups",),
                f"must divide heads, which is {self.heads}",
                self.groups,
                f"Use a divisor: {divisors(self.heads)}.",
            )
        limit = self.step_limit
        if limit is not None and limit.most is not None and limit.least >= limit.most:
            yield Fault(
                ("step_limit", "least"),
                f"must be less than most, which is {limit.most:g}",
                limit.least,
                "Use 0 for no lower bound.",
            )
