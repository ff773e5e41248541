"""RG-LRU: channels that decay at rates which gates choose."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from specs.base.base import Fault, RuleContext, Width
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import PartContext
from specs.kinds.activation import Activation
from specs.kinds.attention import Heads, head_count_faults
from specs.kinds.mixer import MixerKind, convolution_text
from specs.kinds.short_convolution import KernelSize


@register("mixer")
class RGLRU(MixerKind):
    """Real-gated linear recurrent unit (Griffin: De et al., 2024): a short convolution, and channels that decay at gated rates."""

    kind: Literal["rg_lru"] = "rg_lru"
    title: ClassVar[str] = "RG-LRU"
    width: Annotated[Width, Role.WIDTH]
    """Number of channels."""
    heads: Annotated[Heads, Role.HEADS]
    """Number of blocks of channels, inside which the gates are projected. It must divide `width`."""
    kernel_size: KernelSize = 4
    """Number of tokens that the convolution sees: a token and those before it."""
    activation: Activation = "gelu_tanh"
    """Activation of the branch that multiplies the output."""

    def details(self, context: PartContext) -> list[str]:
        gates = f"gates in {self.heads:,} blocks"
        return [f"{self.width:,} channels", gates, convolution_text(self.kernel_size)]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        return head_count_faults(self.heads, self.width)
