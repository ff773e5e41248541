"""RWKV-7: a generalized delta rule over tokens, and a feed-forward that reads two tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

from specs.base.base import Fault, PositiveFloat, Width
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import PartContext
from specs.kinds.activation import ACTIVATION_TITLES, Activation
from specs.kinds.attention import Heads
from specs.kinds.mixer import MixerKind, state_text


@register("mixer")
class RWKV7(MixerKind):
    """Time mixing of RWKV-7 (Peng et al., 2025): a generalized delta rule with one decay per key channel, whose inputs mix each
    token with the one before it."""

    kind: Literal["rwkv7"] = "rwkv7"
    title: ClassVar[str] = "RWKV-7"
    heads: Heads
    """Number of heads, each with a state of its own."""
    head_dim: Annotated[Width, Role.WIDTH] = 64
    """Width of the queries, keys and values of one head."""
    decay_rank: Annotated[Width, Role.WIDTH]
    """Width from which the decays are projected."""
    update_rank: Annotated[Width, Role.WIDTH]
    """Width from which the update rates are projected (in-context learning rates)."""
    value_rank: Annotated[Width | None, Role.WIDTH] = None
    """Width from which the shares of the first layer's values in this layer's are projected. Default: the layer uses its own
    values alone, as the first layer must."""
    gate_rank: Annotated[Width, Role.WIDTH]
    """Width from which the output gate is projected."""
    norm_eps: PositiveFloat = 6.4e-4
    """Number that the norm of each head's output adds to the variance to avoid division by 0."""

    @property
    def width(self) -> int:
        """The width of the queries, keys and values of all heads."""
        return self.heads * self.head_dim

    def details(self, context: PartContext) -> list[str]:
        mixed = [] if self.value_rank is None else ["values mixed with the first layer's"]
        return [state_text(self.heads, self.head_dim, self.head_dim), *mixed]

    @property
    def reads_first_layer(self) -> bool:
        return self.value_rank is not None

    def layer_faults(self, earlier: Sequence[MixerKind | None]) -> Iterable[Fault]:
        rwkv = (mixer for mixer in earlier if isinstance(mixer, RWKV7))
        if self.value_rank is not None and all(
            mixer.value_rank is not None or mixer.width != self.width for mixer in rwkv
        ):
            yield Fault(
                ("value_rank",),
                "requires a layer before it with a mixer of kind rwkv7, as wide, without value_rank",
                self.value_rank,
                "Put such a layer before it, or remove it.",
            )


@register("mixer")
class RWKVChannelMix(MixerKind):
    """Channel mixing of RWKV-7 (Peng et al., 2025): a feed-forward of each token mixed with the one before it."""

    kind: Literal["rwkv_channel_mix"] = "rwkv_channel_mix"
    title: ClassVar[str] = "RWKV channel mix"
    hidden: Annotated[Width, Role.WIDTH]
    """Width of the hidden layer (RWKV-7: `4 * d_model`)."""
    activation: Activation = "relu2"
    """Activation of the hidden layer."""

    def details(self, context: PartContext) -> list[str]:
        return [f"{self.hidden:,} wide, over 2 tokens", ACTIVATION_TITLES[self.activation]]
