"""Specs with every short form written out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specs.base.base import Component, RuleContext
from specs.base.roles import field_values
from specs.forms.canonical import acting_position, embedding_in_full
from specs.forms.full import full
from specs.kinds.attention import MultiHeadShape
from specs.kinds.block import BlockParts
from specs.kinds.mixer import AttentionKind
from specs.model.model import Model
from specs.model.stack import LayerGroup, LayerRun, Stack, StackName

_BY_STACK = ("position", "embedding", "context_length")


def written_out(model: Model) -> dict[str, Any]:
    """The model as JSON data that reads back as an equal model, with every value stated where it takes effect.

    Each stack states its embedding, position, width and lengths, each block the norm of each branch and its attentions in full;
    patterns of layers are lists of runs.
    """
    stacks = dict(model.stacks())
    data: dict[str, Any] = {}
    for key, value in field_values(model).items():
        if key in stacks:
            data[key] = _stack(key, model)
        elif key not in _BY_STACK:
            data[key] = full(value)
    return _stated(data)


def _stack(name: StackName, model: Model) -> dict[str, Any]:
    stack = model.stack(name)
    width, context = model.width_of(stack), model.rule_context(name, stack)

    def block(named: str | None) -> dict[str, Any]:
        return _block(stack.named_block(named), stack, model, context)

    data = {
        "d_model": width,
        "context_length": model.context_length_of(stack),
        "causal": model.is_causal(name),
        "bidirectional": stack.bidirectional,
        "embedding": embedding_in_full(model.embedding_of(stack), width),
        "position": full(model.position_of(stack)),
        "layers": list(_runs(stack)),
        "block": block(None),
        "blocks": {block_name: block(block_name) for block_name in stack.blocks},
        "final_norm": full(stack.final_norm)
        if isinstance(stack.final_norm, Component)
        else stack.ends_with_norm,
        "weighted_layer_sum": stack.weighted_layer_sum,
        "altup": None if stack.altup is None else full(stack.altup),
        "queries": None if stack.queries is None else full(stack.queries),
        "head": full(stack.head),
    }
    return _stated(data)


def _runs(stack: Stack) -> Iterator[dict[str, Any]]:
    """The entries of a list of layers: patterns as their runs, except those whose repetitions share weights."""
    if isinstance(stack.layers, int):
        yield full(LayerRun(repeat=stack.layers))
        return
    for entry in stack.layers:
        if isinstance(entry, LayerGroup) and not entry.shared:
            for _ in range(entry.repeat):
                yield from map(full, entry.pattern)
        else:
            yield full(entry)


def _block(block: BlockParts, stack: Stack, model: Model, context: RuleContext) -> dict[str, Any]:
    data: dict[str, Any] = full(block)
    width = model.width_of(stack)
    own: dict[str, Any] = {f"{branch}_norm": block.norm_of(branch) for branch in block.branches()}
    own["feed_forward_residual"] = block.feed_forward_residual or block.residual
    refused = {fault.path[0] for fault in block.model_copy(update=own).faults(context)}
    data |= {key: full(value) for key, value in own.items() if key not in refused}
    if block.attention is not None:
        terms = acting_position(block.attention, stack, model).score_terms
        data["attention"] = _attention(block.attention, width, terms)
    crossing = block.cross_attention or block.attention if context.cross else None
    if crossing is not None:
        data["cross_attention"] = _attention(crossing, width) | {
            "position": None,
            "window": None,
            "chunk": None,
        }
    return data


def _attention(attention: AttentionKind, width: int, terms: int = 1) -> dict[str, Any]:
    data: dict[str, Any] = full(attention)
    if isinstance(attention, MultiHeadShape):
        data["head_dim"] = attention.head_width(width)
    scale = attention.score_scale(width, terms)
    return data if scale is None else {**data, "scale": scale}


def _stated(data: Mapping[str, Any]) -> dict[str, Any]:
    """Remove null values: parts that a model or a stack does not have."""
    return {key: value for key, value in data.items() if value not in (None, "", {})}
