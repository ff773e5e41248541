"""Attention over a sequence's own tokens, or over an encoder's.

Shapes: batch B, query length T, key length S, width D, heads H, key-value heads G, head width K.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

import specs.kinds.attention as spec
from zoo import functional
from zoo.components.block_summaries import BlockSummaries, TokenBlocks
from zoo.components.linear import Linear
from zoo.components.mixer import LENGTH, BiasKey, BlocksKey, Mixer, MixerContext, State, StateTensor
from zoo.components.norm import PerHeadNorm
from zoo.components.position import Position
from zoo.components.scaling import scaled
from zoo.context import BuildContext
from zoo.core.initialization import Distribution
from zoo.core.sharding import COLUMNS, GATHERED, HEADS, ROWS, SHARED, SLICED, Sharding, counted
from zoo.registry import build_component, builds

KeyValue = tuple[Tensor, Tensor]
"""Keys and values of one layer: B G S K each."""


def key_value_state(heads: int, key: int, value: int) -> tuple[StateTensor, ...]:
    """The state of an attention: the keys and values of every token, for each of its heads."""
    return StateTensor("key", (heads, LENGTH, key)), StateTensor("value", (heads, LENGTH, value))


def split_heads(x: Tensor, width: int) -> Tensor:
    """B T (H K) -> B H T K."""
    return x.unflatten(-1, (-1, width)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """B H T K -> B T (H K)."""
    return x.transpose(1, 2).flatten(2)


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


class Projections(nn.Module):
    """The four projections of an attention, and the attention itself."""

    norms_rotated = False

    def __init__(self, spec: spec.MultiHeadShape, context: BuildContext, source: int | None = None) -> None:
        """source: the width of what keys and values are computed from; that of the queries unless given."""
        super().__init__()
        d_model, width = context.d_model, spec.head_width(context.d_model)
        reads = context.input_width or d_model
        source = source or reads
        self.heads, self.key_value_heads, self.width = spec.heads, spec.key_value_heads, width
        own = not spec.reuses_keys_values
        self.scale = width**-0.5 if spec.scale is None else spec.scale
        self.dropout = spec.dropout
        self.query = Linear(reads, spec.heads * width, bias=spec.bias.query)
        self.key = Linear(source, spec.key_value_heads * width, bias=spec.bias.key) if own else None
        self.value: Linear | None = None
        if own and spec.values == "projected":
            self.value = Linear(source, spec.key_value_heads * width, bias=spec.bias.value)
        self.gate = Linear(reads, spec.heads * width, bias=spec.bias.query) if spec.output_gate else None
        self.output = Linear(spec.heads * width, d_model, bias=spec.bias.output)
        self.clip, self.softcap = spec.clip, spec.softcap
        self.multipliers = spec.multipliers
        self.norm_over = None if spec.qk_norm is None else spec.qk_norm.over
        self.query_norm = query_key_norm(spec.qk_norm, spec.heads, width, context)
        self.key_norm = self.value_norm = None
        if own:
            self.key_norm = query_key_norm(spec.qk_norm, spec.key_value_heads, width, context)
        if own and spec.value_norm is not None:
            self.value_norm = build_component(spec.value_norm, replace(context, d_model=width))
        self.sinks = nn.Parameter(torch.empty(spec.heads)) if spec.sinks else None  # H

    def initial(self, leaf: str) -> Distribution:
        """A sink weighs as much as a key whose score is 0."""
        return Distribution(constant=0.0)

    @property
    def rotated_width(self) -> int:
        """The width of queries and keys that the position rotates."""
        return self.width

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """The keys and values of all tokens; none where they are those of another layer."""
        if self.key is None:
            return ()
        return key_value_state(self.key_value_heads, self.width, self.width)

    def scaled_input(self, x: Tensor) -> Tensor:
        """What queries, keys, values and the gate are projected from: B T D -> B T D."""
        return scaled(x, self.multipliers.input)

    def queries(self, x: Tensor) -> Tensor:
        """B T D -> B H T K."""
        return self._heads(self._clipped(self.query(x)), self.query_norm)

    def keys(self, x: Tensor) -> Tensor:
        """B S D, or of another width, -> B G S K."""
        return self._keys(self._clipped(self.key(x)))  # type: ignore[misc]

    def keys_values(self, x: Tensor) -> KeyValue:
        """B S D, or of another width, -> B G S K twice."""
        projected = self._clipped(self.key(x))  # type: ignore[misc]
        return self._keys(projected), self._values(
            projected if self.value is None else self._clipped(self.value(x))
        )

    def _values(self, projected: Tensor) -> Tensor:
        """B S (G K) -> B G S K."""
        if self.value_norm is None:
            return split_heads(projected, self.width)
        return self.value_norm(projected.unflatten(-1, (-1, self.width))).transpose(1, 2)

    def _keys(self, projected: Tensor) -> Tensor:
        """B S (G K) -> B G S K."""
        assert self.key_norm is not None
        return self._heads(projected, self.key_norm)

    def _clipped(self, x: Tensor) -> Tensor:
        return x if self.clip is None else x.clamp(-self.clip, self.clip)

    def _heads(self, x: Tensor, norm: nn.Module) -> Tensor:
        """Norm and split queries or keys: B T (H K) -> B H T K."""
        if self.norms_rotated:
            return split_heads(x, self.width)
        if self.norm_over == "width":
            return split_heads(norm(x), self.width)
        return norm(x.unflatten(-1, (-1, self.width))).transpose(1, 2)

    def sharding(self) -> Sharding:
        """By heads, with as many key-value heads per process."""
        norm = {"width": GATHERED, "head": SHARED, "each_head": HEADS, None: SHARED}[self.norm_over]
        return Sharding(
            dict.fromkeys(("query", "key", "value", "gate"), COLUMNS)
            | {"output": ROWS, "sinks": HEADS, "query_norm": norm, "key_norm": norm, "value_norm": SHARED}
            | {"bias_gate": SLICED},
            {"heads": self.heads, "kv_heads": self.key_value_heads},
            counted(heads=self.heads, key_value_heads=self.key_value_heads),
            last="output",
        )

    def attend(self, x: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        """x: B T D, of which the gate is computed, B H T K, B G S K, B G S K -> B T D."""
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
        mixed = mixed if self.gate is None else mixed * torch.sigmoid(self.gate(x))
        return scaled(self.output(mixed), self.multipliers.output)


class BiasGate(nn.Module):
    """a * (b * factor - 1) + 2, with gates a and b of each head's part of the input (WavLM: Chen et al., 2021)."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.projection = Linear(width, 8)
        self.factor = nn.Parameter(torch.empty(1, heads, 1, 1))

    def initial(self, leaf: str) -> Distribution:
        """A gate between 1 and 2."""
        return Distribution(constant=1.0)

    def forward(self, x: Tensor) -> Tensor:
        """B T (H K) -> B H T 1."""
        sums = self.projection(x.unflatten(-1, (-1, self.width))).unflatten(-1, (2, 4)).sum(-1)  # B T H 2
        a, b = torch.sigmoid(sums.transpose(1, 2)).chunk(2, -1)  # B H T 1
        return a * (b * self.factor - 1.0) + 2.0


def _turns_input(position: object) -> bool:
    """Whether a position, as its spec has it, rotates the input of queries and keys."""
    return getattr(position, "rotates", None) == "input"


def _is_gated(context: BuildContext) -> bool:
    """Whether the position that acts inside an attention has a gate in it."""
    if context.position is not None:
        return context.position.gated
    return getattr(context.position_kind, "gated", False)


@builds(spec.MultiHead, spec.GroupedQuery, spec.MultiQuery)
class SelfAttention(Projections, Mixer):
    """Attention of a sequence to itself and to its past.

    ``position`` is the attention's own, possibly shared with other layers, or None for the stack's.
    """

    def __init__(self, spec: spec.MultiHeadShape, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.window, self.patch_window, self.chunk = spec.window, spec.patch_window, spec.chunk
        self.position = context.position
        self.turns_input = _turns_input(spec.position or context.position_kind)
        self.bias_gate = BiasGate(spec.heads, self.width) if _is_gated(context) else None
        if spec.scale is None:
            terms = (spec.position or context.position_kind).score_terms
            self.scale = (terms * self.width) ** -0.5
        self.norms_rotated = spec.qk_norm is not None and spec.qk_norm.after_rotation
        self.summaries = None
        if spec.block_summaries is not None:
            inner = replace(context, d_model=context.input_width or context.d_model)
            self.summaries = BlockSummaries(spec.block_summaries, inner)

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T D, past: B G P K twice -> B T D, and all keys and values, B G S K twice; past and state are empty where
        they are those of another layer."""
        position, positions = self.position or context.position, context.positions
        x = self.scaled_input(x)
        key, value = context.reused if self.key is None else self._so_far(x, position, context, past)
        turned = position.rotate_input(x, positions, self.width) if self.turns_input else x
        query = position.rotate(self.queries(turned), positions, self.width)
        if self.norms_rotated:
            query = self.query_norm(query)
        query = position.scale_queries(query, positions)
        bias = context.biases[BiasKey(position.name, self.window, self.patch_window, self.chunk)]
        distances = context.distances.get(position.name)
        if self.bias_gate is not None:
            gated = self.bias_gate(x) * context.gated[position.name]  # B H T S
            bias = gated if bias is None else gated + bias
        if distances is not None:
            compared = position.compare(self, query, key, distances)  # B H T S
            bias = compared if bias is None else bias + compared
        if self.summaries is not None:
            assert bias is not None
            bias = torch.cat((bias, self._blocks(context).bias), -1)  # B H T (S + J)
        return self.attend(x, query, key, value, bias), () if self.key is None else (key, value)

    def _blocks(self, context: MixerContext) -> TokenBlocks:
        assert self.summaries is not None
        return context.blocks[BlocksKey((self.position or context.position).name, self.summaries.size)]

    def _before_sums(self, x: Tensor, context: MixerContext) -> Tensor:
        """The tokens and after them the sums of the blocks: B S D -> B (S + J) D."""
        assert self.summaries is not None
        return torch.cat((x, self.summaries(x, self._blocks(context).members)), 1)

    def _turned(self, x: Tensor, position: Position, context: MixerContext) -> KeyValue:
        """Keys of the rotated input, and values of the input itself: B T D -> B G T K twice."""
        assert self.value is not None
        turned = position.rotate_input(x, context.positions, self.width)
        return self.keys(turned), self._values(self._clipped(self.value(x)))

    def _so_far(self, x: Tensor, position: Position, context: MixerContext, past: State | None) -> KeyValue:
        """All keys and values: B T D and B G P K twice -> B G S K twice."""
        read = x if self.summaries is None else self._before_sums(x, context)
        key, value = self._turned(x, position, context) if self.turns_input else self.keys_values(read)
        key = position.rotate(key, context.positions, self.width)
        if self.norms_rotated:
            key = self.key_norm(key)  # type: ignore[misc]
        return context.cached(past, key, value)


class CrossAttention(Projections):
    """Attention of a decoder to the output of its encoder, which is projected once per sequence.

    The encoder's width E may be another than the decoder's.
    """

    def __init__(self, spec: spec.MultiHeadShape, context: BuildContext) -> None:
        super().__init__(spec, context, context.encoder_width)

    def keys_values(self, x: Tensor) -> KeyValue:
        """The encoder's output, B S D -> B G S K twice."""
        return super().keys_values(self.scaled_input(x))

    def forward(self, x: Tensor, context: MixerContext, encoded: State) -> Tensor:
        """x: B T D, encoded: B G S K twice, from ``keys_values`` of the encoder's output -> B T D."""
        (key, value), x = encoded, self.scaled_input(x)
        return self.attend(x, self.queries(x), key, value, context.cross_bias)
