"""Mamba: channels whose states decay at rates that the input selects."""

from collections.abc import Iterable
from typing import Annotated, Literal

from specs.base.base import Fault, OmitDefault, RuleContext, Width
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import TIMES, PartContext
from specs.kinds.activation import Activation
from specs.kinds.attention import Heads, head_count_faults
from specs.kinds.mixer import MixerKind, convolution_text
from specs.kinds.norm import Norm
from specs.kinds.short_convolution import KernelSize


@register("mixer")
class Mamba(MixerKind):
    """Mamba (Gu and Dao, 2023): a short convolution, and channels whose states decay at rates that the input selects."""

    kind: Literal["mamba"] = "mamba"
    width: Annotated[Width, Role.WIDTH]
    """Number of channels."""
    state_size: Annotated[Width, Role.WIDTH] = 16
    """Number of states of a channel."""
    step_rank: Annotated[Width, Role.WIDTH]
    """Width from which the step sizes of all channels, or of a head's, are projected."""
    heads: Annotated[Heads, OmitDefault()] = 1
    """Number of blocks of channels, each with step sizes, inputs and outputs of states of its own (Zamba: 2). It must divide
    `width`."""
    kernel_size: KernelSize = 4
    """Number of tokens that the convolution sees: a token and those before it."""
    activation: Activation = "silu"
    """Activation after the convolution."""
    bias: bool = False
    """Whether the input and output projections add a bias."""
    convolution_bias: bool = True
    """Whether the convolution adds a bias."""
    norm: Norm | None = None
    """Norm of the narrow step sizes and of B and C, each with separate weights (Jamba, Falcon-Mamba). Default: none."""

    def details(self, context: PartContext) -> list[str]:
        apart = [] if self.heads == 1 else [f"in {self.heads:,} heads"]
        channels = f"{self.width:,} channels {TIMES} {self.state_size:,} states"
        return [channels, *apart, convolution_text(self.kernel_size)]

    def why_insensitive(self, width: int) -> str:
        return "" if self.norm is None else self.norm.why_insensitive(min(self.state_size, self.step_rank))

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from head_count_faults(self.heads, self.width)
        if self.norm is not None:
            yield from (fault.under("norm") for fault in self.norm.faults(context))
