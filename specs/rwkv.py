"""RWKV-7: a generalized delta rule over tokens, and a feed-forward that reads two tokens."""

from typing import Annotated, Literal

from specs.activation import Activation
from specs.attention import Heads
from specs.base import Component, PositiveFloat, Width
from specs.registry import register
from specs.roles import Role


@register("mixer")
class RWKV7(Component):
    """Time mixing of RWKV-7 (Peng et al., 2025): a generalized delta rule with one decay per key channel, whose inputs mix each
    token with the one before it."""

    kind: Literal["rwkv7"] = "rwkv7"
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


@register("mixer")
class RWKVChannelMix(Component):
    """Channel mixing of RWKV-7 (Peng et al., 2025): a feed-forward of each token mixed with the one before it."""

    kind: Literal["rwkv_channel_mix"] = "rwkv_channel_mix"
    hidden: Annotated[Width, Role.WIDTH]
    """Width of the hidden layer (RWKV-7: `4 * d_model`)."""
    activation: Activation = "relu2"
    """Activation of the hidden layer."""
