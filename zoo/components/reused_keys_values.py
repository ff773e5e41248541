"""Attention to the keys and values of an earlier layer (cross-layer attention: Brandon et al., 2024; Gemma 3n)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

import specs.kinds.attention as spec
from zoo.components.attention import KeyValue
from zoo.components.attention_variations import VariedSelfAttention, check_class
from zoo.components.mixer import MixerContext, State, StateTensor
from zoo.components.position import Position
from zoo.context import LayerContext
from zoo.registry import builds, extends


@dataclass(frozen=True)
class ReusingContext(MixerContext):
    """The context of a layer that attends to all keys and values of an earlier one: B G S K twice."""

    keys_values: State = ()

    @classmethod
    def after(cls, context: MixerContext, state: State) -> ReusingContext:
        """The same with the keys and values in the state that the earlier layer left."""
        return cls(**vars(context), keys_values=state[:2])


@builds(
    spec.MultiHead,
    spec.GroupedQuery,
    spec.MultiQuery,
    when=lambda spec, context: spec.reuses_keys_values,
)
class ReusingAttention(VariedSelfAttention):
    """Attention without keys and values of its own; it caches none."""

    def __init__(self, spec: spec.MultiHeadShape, context: LayerContext) -> None:
        super().__init__(spec, context)
        self.key = self.value = self.key_norm = self.value_norm = None  # type: ignore[assignment]

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """None: the keys and values are another layer's."""
        return ()

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        x, _ = super().forward(x, context, past)
        return x, ()

    def past_and_new(
        self, x: Tensor, position: Position, context: MixerContext, past: State | None
    ) -> KeyValue:
        assert isinstance(context, ReusingContext)
        key, value = context.keys_values
        return key, value


@extends(spec.MultiHeadShape)
def check_reuse(module: nn.Module, spec: spec.MultiHeadShape, context: LayerContext) -> None:
    """Raise :class:`PluginError` if a plugin's attention would not reuse keys and values."""
    if spec.reuses_keys_values:
        check_class(module, ReusingAttention, "reuses_keys_values")
