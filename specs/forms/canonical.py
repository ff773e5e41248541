"""The canonical form of an architecture, with all defaults filled in; specs of the same model have equal forms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from specs.base.errors import SpecPath
from specs.base.roles import Role, fields_by_role, rewritten
from specs.forms.full import full
from specs.kinds.attention import GroupedQuery, MultiHead, MultiQuery
from specs.kinds.block import BlockParts
from specs.kinds.embedding import EmbeddingKind, Projection, Tokens
from specs.kinds.mixer import AttentionKind
from specs.kinds.position import NoPosition, PositionKind
from specs.kinds.resampler import ResamplerConnector
from specs.kinds.rope import Rope
from specs.model.model import Model
from specs.model.stack import STACKS, Stack

Item = TypeVar("Item")

_ABOUT = {"name", "summary", "source", "year", "expect", "initialization"}
_BY_STACK = {*STACKS, "embedding", "context_length", "position"}
_BY_LAYER = {"layers", "block", "blocks", "final_norm"}
_NORMS = ("attention_norm", "mixer_norm", "feed_forward_norm")


def canonical(model: Model) -> dict[str, Any]:
    """The computation of the model as plain data: stacks layer by layer, without name, dropout and initialization."""
    return _computed(rewritten(model, _without_dropout))


def complete(model: Model) -> dict[str, Any]:
    """The canonical form with fields that affect only training and the input length: equal for equivalent specs."""
    data = _computed(model)
    for name, stack in model.stacks():
        data[name]["context_length"] = model.context_length_of(stack)
    return {**data, "initialization": full(model.initialization)}


def _computed(model: Model) -> dict[str, Any]:
    data: dict[str, Any] = model.model_dump(mode="json", exclude=_ABOUT | _BY_STACK)
    data["d_model"] = model.output_width
    for name, stack in model.stacks():
        data[name] = _stack(stack, model, cross=name == "decoder" and model.encoder is not None)
        width = model.width_of(stack)
        data[name] |= {
            "causal": model.is_causal(name),
            "d_model": width if width != data["d_model"] else None,
        }
    if (connector := data.pop("connector")) is not None:
        data["connector"] = {**connector, **_hidden(connector, data["d_model"])}
        if isinstance(model.connector, ResamplerConnector):
            attention = _attention(model.connector.block.attention, data["d_model"])
            data["connector"]["block"] = {**connector["block"], "attention": attention}
    _replace(data["head"], "scale", "inverse_sqrt_d_model", model.output_width**-0.5)
    return data


def _hidden(connector: Mapping[str, Any], d_model: int) -> dict[str, Any]:
    return {"hidden": connector["hidden"] or d_model} if "hidden" in connector else {}


def _replace(part: dict[str, Any], key: str, word: str, value: float) -> None:
    if part.get(key) == word:
        part[key] = value


def embedding_in_full(embedding: EmbeddingKind, d_model: int) -> dict[str, Any]:
    """An embedding in full, with its table's width, projection and scale."""
    data: dict[str, Any] = full(embedding)
    if isinstance(embedding, Tokens):
        width = embedding.table_width(d_model)
        projection = embedding.projection or (Projection() if width != d_model else None)
        data |= {"width": width, "projection": projection and full(projection)}
        _replace(data, "scale", "sqrt_d_model", d_model**0.5)
    return data


def _stack(stack: Stack, model: Model, *, cross: bool) -> dict[str, Any]:
    blocks, position, embedding = stack.layer_blocks(), model.position_of(stack), model.embedding_of(stack)
    described = {id(block): _block(block, stack, model, cross=cross) for block in distinct(blocks)}
    # Without it, the context length only limits inputs and changes no computation.
    bounded = position.embedded or not embedding.any_length
    return {
        **stack.model_dump(mode="json", exclude=_BY_STACK | _BY_LAYER),
        "embedding": embedding_in_full(embedding, model.width_of(stack)),
        "context_length": model.context_length_of(stack) if bounded else None,
        "final_norm": None if stack.end_norm is None else full(stack.end_norm),
        "weighted_layer_sum": stack.weighted_layer_sum or None,
        "position": full(position) if position.embedded else None,
        "layers": [
            described[id(block)] for block in blocks
        ],  # equal blocks are one object, which speeds up comparison
        "same_as": stack.owners(),
    }


def _block(block: BlockParts, stack: Stack, model: Model, *, cross: bool) -> dict[str, Any]:
    data: dict[str, Any] = block.model_dump(mode="json", exclude={"norm", *_NORMS})
    if block.feed_forward_residual == block.residual:
        data["feed_forward_residual"] = None
    width = model.width_of(stack)
    norms = {f"{branch}_norm": full(block.norm_of(branch)) for branch in block.branches()}
    if block.attention is not None:
        terms = acting_position(block.attention, stack, model).score_terms
        data["attention"] = _attention(block.attention, width, terms)
        data["attention"]["position"] = _position(block.attention, stack, model)
    crossing = block.cross_attention or block.attention
    data["cross_attention"] = _attention(crossing, width) if cross and crossing is not None else None
    if cross:
        norms["cross_attention_norm"] = full(block.norm_of("cross_attention"))
        data["cross_attention"] |= {"position": None, "window": None, "chunk": None}
    return {**data, **norms}


def acting_position(attention: AttentionKind, stack: Stack, model: Model) -> PositionKind:
    """The position that acts inside an attention: its own or the stack's, if that does."""
    of_stack = model.position_of(stack)
    return attention.own_position or (NoPosition() if of_stack.embedded else of_stack)


def _position(attention: AttentionKind, stack: Stack, model: Model) -> dict[str, Any] | None:
    """The position that acts inside an attention, in full."""
    acting = acting_position(attention, stack, model)
    data: dict[str, Any] = full(acting)
    if isinstance(acting, Rope) and attention.position_heads:
        data["dimensions"] = acting.dimensions or attention.head_width(model.width_of(stack))
        if acting.scaling is not None:
            data["scaling"]["attention_factor"] = acting.scaling.amplitude(model.context_length_of(stack))
    return data


def _attention(attention: AttentionKind, d_model: int, terms: int = 1) -> dict[str, Any]:
    """An attention in full; ``terms``: the number of products in the sum of its scores."""
    data: dict[str, Any] = full(attention)
    if isinstance(attention, MultiHead | GroupedQuery | MultiQuery):  # kinds with the same fields
        data |= {
            "kind": "multi_head",
            "head_dim": attention.head_width(d_model),
            "kv_heads": attention.key_value_heads,
        }
    scale = attention.score_scale(d_model, terms)
    return data if scale is None else {**data, "scale": scale}


def _without_dropout(part: BaseModel) -> dict[str, Any]:
    return {name: 0.0 for name, role, _ in fields_by_role(part) if role is Role.DROPOUT}


def distinct(items: Iterable[Item]) -> list[Item]:
    """The distinct objects among the items; equal layers are mostly one object."""
    return list({id(item): item for item in items}.values())


def differences(a: Any, b: Any, path: SpecPath = ()) -> Iterator[tuple[SpecPath, Any, Any]]:
    """The path and both values of each difference; for parts of different kinds, only the kinds."""
    if isinstance(a, Mapping) and isinstance(b, Mapping) and a.get("kind") != b.get("kind"):
        yield (*path, "kind"), a.get("kind"), b.get("kind")
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in [*a, *(key for key in b if key not in a)]:
            yield from differences(a.get(key), b.get(key), (*path, key))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        known: dict[tuple[int, int], list[tuple[SpecPath, Any, Any]]] = {}
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            if (id(x), id(y)) not in known:
                known[id(x), id(y)] = list(differences(x, y))
            yield from (((*path, i, *inner), p, q) for inner, p, q in known[id(x), id(y)])
    elif a != b and not nearly_equal(a, b):
        yield path, a, b


def nearly_equal(a: Any, b: Any) -> bool:
    """Whether two numbers are equal up to rounding: configs store values that specs compute by formula."""
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return numbers and abs(a - b) <= 1e-12 * max(abs(a), abs(b)) and bool(a) == bool(b)
