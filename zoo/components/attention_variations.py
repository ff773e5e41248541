"""Attention with what single families add to it: limits of what queries see, norms of heads, gates, and other scores.

Shapes: batch B, query length T, key length S, width D, heads H, key-value heads G, head width K.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

import specs.kinds.attention as spec
from specs.base.errors import PluginError
from specs.base.roles import changed_fields
from specs.kinds.position import PositionKind
from zoo import functional
from zoo.components.attention import (
    CrossAttention,
    KeyValue,
    Projections,
    SelfAttention,
    merge_heads,
    split_heads,
)
from zoo.components.gated_bias import BiasGate
from zoo.components.mixer import ONE_KEY, MixerContext, State
from zoo.components.norm import PerHeadNorm
from zoo.components.output_gate import gate_projection, gated
from zoo.components.position import Position
from zoo.components.scaling import scaled
from zoo.context import BuildContext, LayerContext
from zoo.core.initialization import Distribution
from zoo.core.sharding import COLUMNS, GATHERED, HEADS, SHARED, SLICED, Sharding
from zoo.registry import build_component, builds, extends

VARIATIONS = ("window", "chunk", "patch_window", "softcap", "sinks", "output_gate", "qk_norm", "value_norm", "values", "clip",
              "multipliers")  # fmt: skip
"""The fields of an attention that change what it computes from queries, keys and values."""


def varied_fields(spec: spec.MultiHeadShape) -> list[str]:
    """The variations of an attention."""
    return [*changed_fields(spec, VARIATIONS)]


def varies(spec: spec.MultiHeadShape) -> bool:
    """Whether an attention has a variation."""
    return bool(varied_fields(spec))


def varies_itself(spec: spec.MultiHeadShape, context: LayerContext) -> bool:
    """Whether an attention of a sequence to itself has a variation, its own or one that its position asks for."""
    position = acting_position(spec, context)
    return varies(spec) or position.score_terms != 1 or position.gates_layers or position.rotates_input


def acting_position(spec: spec.MultiHeadShape, context: LayerContext) -> PositionKind:
    """The kind of the position that acts inside an attention: its own, or the stack's."""
    return spec.position or context.position_kind


def query_key_norm(spec: spec.QKNorm | None, heads: int, width: int, context: BuildContext) -> nn.Module:
    """The norm of queries or keys: over ``width`` of B T (H K), or per head of B T H K."""
    if spec is None:
        return nn.Identity()
    if spec.over == "width":
        return build_component(spec.norm, replace(context, d_model=heads * width))
    context = replace(context, d_model=width)
    return (
        PerHeadNorm(spec.norm, heads, context)
        if spec.over == "each_head"
        else build_component(spec.norm, context)
    )


class VariedProjections(Projections):
    """Projections with clipping, norms of heads, an output gate, sinks, and constant factors, each optional."""

    def __init__(self, spec: spec.MultiHeadShape, context: BuildContext) -> None:
        super().__init__(spec, context)
        width = self.width
        self.clip, self.softcap, self.multipliers = spec.clip, spec.softcap, spec.multipliers
        self.norm_over = None if spec.qk_norm is None else spec.qk_norm.over
        self.norms_rotated = spec.qk_norm is not None and spec.qk_norm.after_rotation
        self.values_are_keys = spec.values == "keys"
        if self.values_are_keys:
            self.value = None  # type: ignore[assignment]
        self.output_gate = spec.output_gate
        self.gate = gate_projection(spec.output_gate, context.reads, spec.heads, self.value_width)
        self.query_norm = query_key_norm(spec.qk_norm, spec.heads, width, context)
        self.key_norm = query_key_norm(spec.qk_norm, spec.key_value_heads, width, context)
        self.value_norm: nn.Module = nn.Identity()
        if spec.value_norm is not None:
            self.value_norm = build_component(spec.value_norm, replace(context, d_model=self.value_width))
        self.sinks = nn.Parameter(torch.empty(spec.heads)) if spec.sinks else None  # H

    def initial(self, leaf: str) -> Distribution:
        """A sink weighs as much as a key whose score is 0."""
        return Distribution(constant=0.0)

    def sharding(self) -> Sharding:
        """By heads, with as many key-value heads per process."""
        norm = {"width": GATHERED, "head": SHARED, "each_head": HEADS, None: SHARED}[self.norm_over]
        plain = super().sharding()
        more = {"gate": COLUMNS, "sinks": HEADS, "query_norm": norm, "key_norm": norm, "value_norm": SHARED}
        return replace(plain, cuts={**plain.cuts, **more, "bias_gate": SLICED})

    def without_gradient(self) -> dict[str, str]:
        """The biases of keys and of their norms."""
        ignored = super().without_gradient()
        return ignored | {"key_norm.bias": ignored["key.bias"]}

    @property
    def is_scaled_by_sinks(self) -> bool:
        """Whether sinks do nothing but scale the output, as with a single head and no output bias."""
        return self.sinks is not None and self.heads == 1 and self.output.bias is None

    def scaled_input(self, x: Tensor) -> Tensor:
        """The input of the query, key, value and gate projections: B T D -> B T D."""
        return scaled(x, self.multipliers.input)

    def queries(self, x: Tensor) -> Tensor:
        return self._heads(self._clipped(self.query(x)), self.query_norm)

    def keys(self, x: Tensor) -> Tensor:
        return self._heads(self._clipped(self.key(x)), self.key_norm)

    def values(self, x: Tensor) -> Tensor:
        return self._values(self._clipped(self.value(x)))

    def keys_values(self, x: Tensor) -> KeyValue:
        if not self.values_are_keys:
            return self.keys(x), self.values(x)
        projected = self._clipped(self.key(x))
        return self._heads(projected, self.key_norm), self._values(projected)

    def _clipped(self, x: Tensor) -> Tensor:
        return x if self.clip is None else x.clamp(-self.clip, self.clip)

    def _values(self, projected: Tensor) -> Tensor:
        """B S (G V) -> B G S V."""
        return self.value_norm(projected.unflatten(-1, (-1, self.value_width))).transpose(1, 2)

    def _heads(self, x: Tensor, norm: nn.Module) -> Tensor:
        """Norm and split queries or keys: B T (H K) -> B H T K."""
        if self.norms_rotated:
            return split_heads(x, self.width)
        if self.norm_over == "width":
            return split_heads(norm(x), self.width)
        return norm(x.unflatten(-1, (-1, self.width))).transpose(1, 2)

    def attend(self, x: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        mixed = merge_heads(
            functional.attention(
                query,
                key,
                value,
                bias,
                scale=self.scale,
                dropout=self.dropout if self.training else 0.0,
                softcap=self.softcap,
                sinks=self.sinks,
            )
        )  # B T (H K)
        if self.output_gate is not None and self.gate is not None:
            mixed = gated(mixed, self.output_gate, self.gate(x), self.value_width)
        return scaled(self.output(mixed), self.multipliers.output)


@builds(spec.MultiHead, spec.GroupedQuery, spec.MultiQuery, when=varies_itself)
class VariedSelfAttention(VariedProjections, SelfAttention):
    """Self-attention with variations of its projections, limits of the keys that queries see, and the requirements of its position."""

    def __init__(self, spec: spec.MultiHeadShape, context: LayerContext) -> None:
        super().__init__(spec, context)
        self.window, self.chunk, self.patch_window = spec.window, spec.chunk, spec.patch_window
        self.scores_one_key = 1 in (self.window, self.patch_window) and not spec.sinks
        position = acting_position(spec, context)
        self.rotates_input = position.rotates_input
        self.bias_gate = BiasGate(spec.heads, self.width) if position.gates_layers else None
        if spec.scale is None:
            self.scale = (position.score_terms * self.width) ** -0.5

    def without_gradient(self) -> dict[str, str]:
        """With a window of one token, queries, keys and their norms."""
        if not self.scores_one_key:
            return super().without_gradient()
        return dict.fromkeys(("query", "key", "query_norm", "key_norm"), ONE_KEY)

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        return super().forward(self.scaled_input(x), context, past)

    def rotated_queries(self, x: Tensor, position: Position, positions: Tensor) -> Tensor:
        turned = position.rotate_input(x, positions, self.width) if self.rotates_input else x
        query = position.rotate(self.queries(turned), positions, self.width)
        if self.norms_rotated:
            query = self.query_norm(query)
        return position.scale_queries(query, positions)

    def rotated_keys_values(self, x: Tensor, position: Position, positions: Tensor) -> KeyValue:
        if self.rotates_input:
            key, value = self.keys(position.rotate_input(x, positions, self.width)), self.values(x)
        else:
            key, value = self.keys_values(x)
        key = position.rotate(key, positions, self.width)
        return self.key_norm(key) if self.norms_rotated else key, value


class VariedCrossAttention(VariedProjections, CrossAttention):
    """Attention to an encoder with the variations of its projections."""

    def keys_values(self, x: Tensor) -> KeyValue:
        return super().keys_values(self.scaled_input(x))

    def forward(self, x: Tensor, context: MixerContext, encoded: State) -> Tensor:
        return super().forward(self.scaled_input(x), context, encoded)


def projections(spec: spec.MultiHeadShape, context: BuildContext) -> Projections:
    """The projections of an attention that is neither of a sequence to itself nor to an encoder."""
    return VariedProjections(spec, context) if varies(spec) else Projections(spec, context)


def cross_attention(spec: spec.MultiHeadShape, context: BuildContext) -> CrossAttention:
    """The attention of a decoder's layer to the encoder."""
    attention = VariedCrossAttention(spec, context) if varies(spec) else CrossAttention(spec, context)
    attention.component_kind = spec.kind  # type: ignore[assignment]
    return attention


def check_class(module: nn.Module, needed: type[SelfAttention], field: str) -> None:
    """Raise :class:`PluginError` if a plugin's attention would ignore a field of its spec that another class acts on."""
    if isinstance(module, SelfAttention) and not isinstance(module, needed):
        raise PluginError(
            f"{type(module).__name__} ignores {field}, which its spec has\n"
            f"  Extend {needed.__module__}.{needed.__qualname__}."
        )


@extends(spec.MultiHeadShape)
def check_variations(module: nn.Module, spec: spec.MultiHeadShape, context: LayerContext) -> None:
    """Raise :class:`PluginError` if a plugin's attention would ignore a variation."""
    if varies_itself(spec, context):
        check_class(module, VariedSelfAttention, next(iter(varied_fields(spec)), "position"))
