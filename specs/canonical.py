"""The architecture that a spec describes, with nothing left to defaults: equal for specs of the same model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from specs.attention import GroupedQuery, MultiHead, MultiHeadShape, MultiQuery
from specs.block import BlockParts
from specs.embedding import EmbeddingKind, Projection, Tokens
from specs.errors import SpecPath
from specs.latent import Latent
from specs.model import Model
from specs.position import NoPosition, PositionKind, Rope
from specs.rope_scaling import RopeScalingKind
from specs.stack import Stack

Item = TypeVar("Item")

_ABOUT = {"name", "summary", "source", "year", "expect", "initialization"}
_BY_STACK = {"encoder", "decoder", "embedding", "context_length", "position"}
_BY_LAYER = {"layers", "block", "blocks", "final_norm"}
_BRANCHES = ("attention", "feed_forward")


def canonical(model: Model) -> dict[str, Any]:
    """Plain data of what the model computes: stacks layer by layer, no name, no dropout, no recipe for weights."""
    result: dict[str, Any] = _without_dropout(_computed(model))
    return result


def complete(model: Model) -> dict[str, Any]:
    """The same with what only training and the longest input depend on: equal for specs that say the same."""
    data = _computed(model)
    for name, stack in model.stacks():
        data[name]["context_length"] = model.context_length_of(stack)
    return {**data, "initialization": model.initialization.model_dump(mode="json")}


def _computed(model: Model) -> dict[str, Any]:
    data: dict[str, Any] = model.model_dump(mode="json", exclude=_ABOUT | _BY_STACK)
    for name, stack in model.stacks():
        data[name] = _stack(stack, model, cross=name == "decoder" and model.encoder is not None)
        data[name]["causal"] = model.is_causal(name)
    _replace(data["head"], "scale", "inverse_sqrt_d_model", model.d_model**-0.5)
    return data


def _replace(part: dict[str, Any], key: str, word: str, value: float) -> None:
    if part.get(key) == word:
        part[key] = value


def _embedding(embedding: EmbeddingKind, model: Model) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": embedding.kind, **embedding.model_dump(mode="json")}
    if isinstance(embedding, Tokens):
        width = embedding.table_width(model.d_model)
        projection = embedding.projection or (Projection() if width != model.d_model else None)
        data |= {"width": width, "projection": projection and projection.model_dump(mode="json")}
        _replace(data, "scale", "sqrt_d_model", model.d_model**0.5)
    return data


def _stack(stack: Stack, model: Model, *, cross: bool) -> dict[str, Any]:
    blocks, position, embedding = stack.layer_blocks(), model.position_of(stack), model.embedding_of(stack)
    described = {id(block): _block(block, position, model, cross=cross) for block in distinct(blocks)}
    # Otherwise the context length is how long inputs may be, not what is computed.
    bounded = position.embedded or not embedding.takes_tokens
    return {
        **stack.model_dump(mode="json", exclude=_BY_STACK | _BY_LAYER),
        "embedding": _embedding(embedding, model),
        "context_length": model.context_length_of(stack) if bounded else None,
        "final_norm": blocks[-1].norm.model_dump(mode="json") if stack.ends_with_norm else None,
        "position": position.model_dump(mode="json") if position.embedded else None,
        "layers": [described[id(block)] for block in blocks],  # equal ones are one, for whoever compares them
        "same_as": stack.owners(),
    }


def _block(block: BlockParts, position: PositionKind, model: Model, *, cross: bool) -> dict[str, Any]:
    data: dict[str, Any] = block.model_dump(mode="json", exclude={"norm"})
    norms = {f"{branch}_norm": block.norm_of(branch).model_dump(mode="json") for branch in _BRANCHES}
    data["attention"] = _attention(block.attention, model)
    data["attention"]["position"] = _position(position, block, model)
    data["cross_attention"] = _attention(block.cross_attention or block.attention, model) if cross else None
    if cross:
        norms["cross_attention_norm"] = block.norm_of("cross_attention").model_dump(mode="json")
        data["cross_attention"] |= {"position": None, "window": None}
    return {**data, **norms}


def _position(position: PositionKind, block: BlockParts, model: Model) -> dict[str, Any] | None:
    """What acts inside a block's attention: its own position or the stack's."""
    own = getattr(block.attention, "position", None)
    if own is None and position.embedded:
        return NoPosition().model_dump(mode="json")
    acting = own or position
    data: dict[str, Any] = acting.model_dump(mode="json")
    if isinstance(acting, Rope) and isinstance(block.attention, MultiHeadShape | Latent):
        data["dimensions"] = acting.dimensions or block.attention.head_width(model.d_model)
        if isinstance(acting.scaling, RopeScalingKind):
            data["scaling"]["attention_factor"] = acting.scaling.amplitude(model.context_length)
    return data


def _attention(attention: Any, model: Model) -> dict[str, Any]:
    data: dict[str, Any] = attention.model_dump(mode="json")
    if isinstance(attention, MultiHead | GroupedQuery | MultiQuery):  # kinds of one shape
        width = attention.head_width(model.d_model)
        scale = width**-0.5 if attention.scale is None else attention.scale
        data |= {"head_dim": width, "kv_heads": attention.key_value_heads, "scale": scale}
        data["kind"] = "multi_head"
    elif isinstance(attention, Latent):
        width = attention.head_dim + attention.rope_dim
        data["scale"] = width**-0.5 if attention.scale is None else attention.scale
    return data


def _without_dropout(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_dropout(item) for key, item in value.items() if key != "dropout"}
    if not isinstance(value, list):
        return value
    changed = {id(item): _without_dropout(item) for item in distinct(value)}
    return [changed[id(item)] for item in value]


def distinct(items: Iterable[Item]) -> list[Item]:
    """The objects among some items, each once: layers alike are mostly one object."""
    return list({id(item): item for item in items}.values())


def differences(a: Any, b: Any, path: SpecPath = ()) -> Iterator[tuple[SpecPath, Any, Any]]:
    """Where two canonical architectures differ: the path and both values; of parts of two kinds, their kinds alone."""
    if isinstance(a, Mapping) and isinstance(b, Mapping) and a.get("kind") != b.get("kind"):
        yield (*path, "kind"), a.get("kind"), b.get("kind")
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in [*a, *(key for key in b if key not in a)]:
            yield from differences(a.get(key), b.get(key), (*path, key))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        found: dict[tuple[int, int], list[tuple[SpecPath, Any, Any]]] = {}
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            if (id(x), id(y)) not in found:
                found[id(x), id(y)] = list(differences(x, y))
            yield from (((*path, i, *inner), p, q) for inner, p, q in found[id(x), id(y)])
    elif a != b and not nearly_equal(a, b):
        yield path, a, b


def nearly_equal(a: Any, b: Any) -> bool:
    """Whether two numbers differ by rounding only: configs write out what specs leave to a formula."""
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return numbers and abs(a - b) <= 1e-12 * max(abs(a), abs(b)) and bool(a) == bool(b)
