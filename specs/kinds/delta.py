"""Gated delta rules: linear attention whose state forgets, and corrects what a key already recalls."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from specs.base.base import Fault, OmitDefault, PositiveFloat, RuleContext, Width
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import PartContext, number_text
from specs.kinds.activation import Activation
from specs.kinds.attention import Heads, divisors
from specs.kinds.mixer import MixerKind, convolution_text, state_text
from specs.kinds.short_convolution import KernelSize


@register("mixer")
class GatedDeltaNet(MixerKind):
    """Gated DeltaNet (Yang et al., 2024), as in Qwen3-Next: a short convolution, the gated delta rule with one decay per head,
    and a gated norm."""

    kind: Literal["gated_delta_net"] = "gated_delta_net"
    title: ClassVar[str] = "Gated DeltaNet"
    heads: Heads
    """Number of value heads, each with a state of its own."""
    key_heads: Heads
    """Number of query and key heads, each shared by `heads / key_heads` value heads. It must divide `heads`."""
    key_width: Annotated[Width, Role.WIDTH] = 128
    """Width of the queries and keys of one head."""
    value_width: Annotated[Width, Role.WIDTH] = 128
    """Width of the values of one head: its state is a matrix, `key_width` x `value_width`."""
    kernel_size: KernelSize = 4
    """Number of tokens that the convolution sees: a token and those before it."""
    activation: Activation = "silu"
    """Activation after the convolution."""
    norm_eps: PositiveFloat = 1e-6
    """Number that the gated norm adds to the mean square to avoid division by 0."""
    negative_eigenvalues: Annotated[bool, OmitDefault()] = False
    """Whether updates are up to 2 instead of 1, so that a token may reverse what a state recalls for its key (Grazzi et al., 2025;
    OLMo Hybrid)."""

    def details(self, context: PartContext) -> list[str]:
        shared = [] if self.key_heads == self.heads else [f"{self.key_heads:,} key heads"]
        states = state_text(self.heads, self.key_width, self.value_width)
        signs = ["updates up to 2"] if self.negative_eigenvalues else []
        return [states, *shared, convolution_text(self.kernel_size), *signs]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.heads % self.key_heads:
            yield Fault(
                ("key_heads",),
                f"must divide heads, which is {self.heads}",
                self.key_heads,
                f"Use a divisor: {divisors(self.heads)}.",
            )


@register("mixer")
class KimiDeltaAttention(MixerKind):
    """Kimi Delta Attention (Kimi team, 2025): a short convolution, the gated delta rule with one decay per channel of the keys,
    and a gated norm."""

    kind: Literal["kimi_delta_attention"] = "kimi_delta_attention"
    title: ClassVar[str] = "Kimi Delta Attention"
    heads: Heads
    """Number of heads, each with a state of its own."""
    head_dim: Annotated[Width, Role.WIDTH] = 128
    """Width of the queries, keys and values of one head, and of the layers between which decays and gates are computed."""
    kernel_size: KernelSize = 4
    """Number of tokens that the convolution sees: a token and those before it."""
    activation: Activation = "silu"
    """Activation after the convolution."""
    norm_eps: PositiveFloat = 1e-5
    """Number that the gated norm adds to the mean square to avoid division by 0."""
    low_rank: Annotated[bool, OmitDefault()] = True
    """Whether decays and gates are computed by way of layers of width `head_dim`; each has one projection otherwise (Ling 3)."""
    decay_bound: Annotated[PositiveFloat | None, OmitDefault()] = None
    """Bound c of the logarithms of decays, which become `-c * sigmoid(rate * (x + bias))` (Ling 3: 5). Default:
    `-rate * softplus(x + bias)`, unbounded."""

    def details(self, context: PartContext) -> list[str]:
        states = state_text(self.heads, self.head_dim, self.head_dim)
        bound = [] if self.decay_bound is None else [f"decays from exp(-{number_text(self.decay_bound)})"]
        return [states, convolution_text(self.kernel_size), *bound]
