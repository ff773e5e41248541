"""The mixers of RWKV-7: each token mixed with the one before it, then a generalized delta rule, or a feed-forward.

Shapes: batch B, tokens T, width D, heads H, head width K.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

import specs.kinds.norm
import specs.kinds.rwkv as spec
from zoo import functional
from zoo.components.activation import activation
from zoo.components.linear import Linear
from zoo.components.mixer import Mixer, MixerContext, State, StateTensor
from zoo.components.norm import PerHeadNorm
from zoo.context import BuildContext
from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype, wide
from zoo.core.sharding import COLUMNS, HEADS, ROWS, SHARED, Sharding, counted
from zoo.registry import builds

FASTEST = 0.6065306597126334
"""The most that a token decays a channel, as a logarithm: exp(-1/2), so that more than 0.54 of its state remains."""

LEAST = 1e-24
"""The number added to the squared length of removal keys."""

MIXED = ("query_mix", "decay_mix", "key_mix", "value_mix", "update_mix", "gate_mix")

INITIAL = {
    **dict.fromkeys(MIXED, Distribution(constant=0.5)),
    "removal_scale": Distribution(constant=0.71),
    "update_scale": Distribution(constant=1.02),
    "bonus": Distribution(constant=-0.04),
}
"""Those of the reference implementation, without their variation over channels and layers."""


def low_rank(d_model: int, rank: int, width: int, *, bias: bool = True) -> tuple[Linear, Linear]:
    """A projection to a narrow vector, and one from it."""
    return Linear(d_model, rank, bias=False), Linear(rank, width, bias=bias)


def shifted(
    x: Tensor, context: MixerContext, last: Tensor | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """x in a dtype, what changes from each token to the one before it, and the last token: B T D, B D -> B T D twice, B D."""
    x = in_dtype(x, dtype)
    before, last = functional.token_shift(x, last, context.alignment(2))
    return x, before - x, last


@builds(spec.RWKV7)
class RWKV7(Mixer):
    """output((norm(delta_rule(query, key, value, decay, removal, update)) + bonus) * gate)."""

    def __init__(self, spec: spec.RWKV7, context: BuildContext) -> None:
        super().__init__()
        d_model, width = context.d_model, spec.width
        self.heads, self.head_dim = spec.heads, spec.head_dim
        self.query_mix, self.decay_mix, self.key_mix, self.value_mix, self.update_mix, self.gate_mix = (
            nn.Parameter(torch.empty(d_model)) for _ in MIXED
        )  # D each
        self.query, self.key, self.value = (Linear(d_model, width, bias=False) for _ in range(3))
        self.decay_in, self.decay_out = low_rank(d_model, spec.decay_rank, width)
        self.update_in, self.update_out = low_rank(d_model, spec.update_rank, width)
        self.share_in = self.share_out = None
        if spec.value_rank is not None:
            self.share_in, self.share_out = low_rank(d_model, spec.value_rank, width)
        self.gate_in, self.gate_out = low_rank(d_model, spec.gate_rank, width, bias=False)
        self.removal_scale, self.update_scale, self.bonus = (
            nn.Parameter(torch.empty(spec.heads, spec.head_dim)) for _ in range(3)
        )  # H K each
        norm = specs.kinds.norm.LayerNorm(eps=spec.norm_eps)
        self.norm = PerHeadNorm(norm, spec.heads, replace(context, d_model=spec.head_dim))
        self.output = Linear(width, d_model, bias=False)

    def initial(self, leaf: str) -> Distribution | None:
        """Those of ``INITIAL``."""
        return INITIAL.get(leaf)

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """The last token, and a matrix per head."""
        states = (self.heads, self.head_dim, self.head_dim)
        return StateTensor("shift", (self.query.in_features,)), StateTensor(
            "recurrent", states, torch.float32
        )

    def sharding(self) -> Sharding:
        """By heads."""
        outward = ("decay_out", "update_out", "share_out", "gate_out")
        cuts = dict.fromkeys(("query", "key", "value", *outward), COLUMNS)
        cuts |= dict.fromkeys(("removal_scale", "update_scale", "bonus", "norm"), HEADS)
        return Sharding(
            cuts | {"output": ROWS}, {"heads": self.heads}, counted(heads=self.heads), last="output"
        )

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T D, past: B D and B H K K -> B T D, and the same state."""
        last, states = (None, None) if past is None else past
        x, change, last = shifted(x, context, last, self.query_mix.dtype)
        query = self._heads(self.query(x + change * self.query_mix))  # B T H K, as all that follow
        decay = self._decay(x + change * self.decay_mix)
        key = self._heads(self.key(x + change * self.key_mix))
        value = self._heads(self._value(x + change * self.value_mix, context))
        update = self._update(x + change * self.update_mix)
        gate = self.gate_out(torch.sigmoid(self.gate_in(x + change * self.gate_mix)))  # B T (H K)
        removal = functional.unit_length(key * self.removal_scale, LEAST)
        key = key * (1.0 + (update - 1.0) * self.update_scale)
        read, written, values, decays, recall, erase = (
            tensor.transpose(1, 2)
            for tensor in (query, key, value, decay, removal * (-decay).exp(), removal * update)
        )  # B H T K each
        mixed, states = functional.generalized_delta_rule(
            read, written, values, decays, recall, erase, states, context.real
        )  # B H T K
        own = (query * key * self.bonus).sum(-1, keepdim=True) * value  # what a token says of itself
        mixed = (self.norm(mixed.transpose(1, 2)) + own).flatten(2)
        return self.output(mixed * gate), (last, states)

    def _heads(self, x: Tensor) -> Tensor:
        """B T (H K) -> B T H K."""
        return x.unflatten(-1, (-1, self.head_dim))

    def _decay(self, x: Tensor) -> Tensor:
        """The logarithm of the decay: B T D -> B T H K, in float32 at least."""
        narrow = torch.tanh(self.decay_in(x))
        return self._heads(torch.sigmoid(wide(self.decay_out(narrow))) * -FASTEST)

    def _update(self, x: Tensor) -> Tensor:
        """The share of what a removal key recalls that is erased: B T D -> B T H K."""
        return self._heads(torch.sigmoid(self.update_out(self.update_in(x))))

    def _value(self, x: Tensor, context: MixerContext) -> Tensor:
        """The values, with a share of the first layer's: B T D -> B T (H K)."""
        value, width = self.value(x), self.heads * self.head_dim
        if self.share_in is None or self.share_out is None:
            context.left.setdefault(("first values", width), value)
            return value
        share = torch.sigmoid(self.share_out(self.share_in(x)))
        return value + (context.left["first values", width] - value) * share


@builds(spec.RWKVChannelMix)
class RWKVChannelMix(Mixer):
    """down(activation(up(x + mix * (the token before - x))))."""

    def __init__(self, spec: spec.RWKVChannelMix, context: BuildContext) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.empty(context.d_model))
        self.up = Linear(context.d_model, spec.hidden, bias=False)
        self.activation = activation(spec.activation)
        self.down = Linear(spec.hidden, context.d_model, bias=False)

    def initial(self, leaf: str) -> Distribution | None:
        """Half of each token."""
        return Distribution(constant=0.5)

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """The last token."""
        return (StateTensor("shift", (self.up.in_features,)),)

    def sharding(self) -> Sharding:
        """By the hidden width."""
        cuts = {"up": COLUMNS, "activation": SHARED, "down": ROWS}
        return Sharding(cuts, {"hidden": self.up.out_features}, last="down")

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T D, past: B D -> B T D, and the same state."""
        last = None if past is None else past[0]
        x, change, last = shifted(x, context, last, self.mix.dtype)
        return self.down(self.activation(self.up(x + change * self.mix))), (last,)
