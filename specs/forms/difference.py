"""Differences between two specs, as paths and values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specs.base.errors import SpecPath, path_text
from specs.base.roles import field_values
from specs.forms.canonical import complete, distinct, nearly_equal
from specs.forms.full import full
from specs.kinds.position import NoPosition
from specs.language.writing import flow
from specs.model.model import Model
from specs.model.stack import STACKS, Stack, StackName

_NORMS = ("attention_norm", "mixer_norm", "cross_attention_norm", "feed_forward_norm")
_OF_MODEL = ("embedding", "position", "context_length")
"""Keys that a model sets for all of its stacks."""


@dataclass(frozen=True)
class Difference:
    """A value that differs between two specs: plain data, or None if a spec has none.

    ``path``: its path in the first spec; ``path_b``: its path in the second, which differs between an encoder and a decoder.
    ``layers``: the indices of the affected layers, None for all common layers or outside stacks. Parts of different kinds are one
    difference, except for parts within them that both have. ``follows``: both specs state the same value, and the difference
    results from another one.
    """

    path: SpecPath
    path_b: SpecPath
    layers: tuple[int, ...] | None
    a: Any
    b: Any
    follows: bool

    def text(self, stacks: Sequence[str] = ()) -> str:
        """The difference on one line, such as ``position learned -> rope``; ``stacks`` names several that have the same."""
        layers = "" if self.layers is None else f" (layers {', '.join(map(str, self.layers))})"
        path = path_text((*stacks, *self.path_b[len(stacks) :]))
        return f"{path}{layers} {_value_text(self.a)} \u2192 {_value_text(self.b)}"

    def as_dict(self) -> dict[str, Any]:
        """As JSON data; ``path_b`` and ``layers`` only if they apply."""
        data: dict[str, Any] = {"path": path_text(self.path)}
        if self.path_b != self.path:
            data["path_b"] = path_text(self.path_b)
        if self.layers is not None:
            data["layers"] = list(self.layers)
        return {**data, "a": self.a, "b": self.b, "follows": self.follows}


def _value_text(value: Any) -> str:
    """A value on one line; of a part of a model, its kind, and of a stack, its depth."""
    if isinstance(value, Mapping):
        if "layers" in value:
            return f"{value['layers']} layers"
        return str(value["kind"]) if "kind" in value else flow(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class CompleteSpec:
    """A spec with its complete form, for a comparison with many others."""

    spec: Model
    form: Mapping[str, Any]

    @classmethod
    def of(cls, spec: Model) -> CompleteSpec:
        """Fill in the defaults of a spec."""
        return cls(spec, complete(spec))


def differences(a: Model, b: Model) -> list[Difference]:
    """The differences between two specs with defaults filled in, ignoring names and published counts."""
    return differences_between(CompleteSpec.of(a), CompleteSpec.of(b))


def differences_between(one: CompleteSpec, other: CompleteSpec) -> list[Difference]:
    """:func:`differences` of two specs whose defaults are filled in; their forms stay as they are."""
    a, b, first, second = one.spec, other.spec, {**one.form}, {**other.form}
    pairs = _paired_stacks(first, second)
    stacks = [_outlined(first.pop(x, None), second.pop(y, None)) for x, y in pairs]
    for key in _OF_MODEL:
        _said_once(key, (first, [x for x, _ in stacks if x]), (second, [y for _, y in stacks if y]))
    differing: list[Difference] = []
    for path, x, y in _differing(first, second, ()):
        same = _stated(a, a.last_stack, 0, path) == _stated(b, b.last_stack, 0, path)
        differing.append(Difference(path, path, None, x, y, same))
    for (name_a, name_b), (stack_a, stack_b) in zip(pairs, stacks, strict=True):
        for path, x, y, layers in _in_stacks(stack_a, stack_b):
            same = _stated_in(a, name_a, path, layers) == _stated_in(b, name_b, path, layers)
            differing.append(Difference((name_a, *path), (name_b, *path), layers, x, y, same))
    return differing


def _paired_stacks(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[StackName, StackName]]:
    """The pairs of stacks to compare: by name, or the single stacks of both models."""
    ours, theirs = ([name for name in STACKS if name in data] for data in (a, b))
    if len(ours) == len(theirs) == 1:
        return [(ours[0], theirs[0])]
    return [(name, name) for name in STACKS if name in (*ours, *theirs)]


def _outlined(a: Any, b: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two canonical stacks in short form, with values common to all layers of both stated once.

    Unequal layers are under ``each``, equal ones under ``block``. An absent stack is empty.
    """
    stacks = [{**stack, "layers": _copies(stack["layers"])} for stack in (a, b) if stack]
    places = [_sole_position(stack) for stack in stacks]
    if all(places):
        for stack, position in zip(stacks, places, strict=True):
            stack["position"] = position
            for layer in distinct(stack["layers"]):
                if layer["attention"]:
                    del layer["attention"]["position"]
    layers = distinct(layer for stack in stacks for layer in stack["layers"])
    if all(_one([layer[key] for key in _NORMS if key in layer]) for layer in layers):
        for layer in layers:
            norms = [layer.pop(key) for key in _NORMS if key in layer]
            layer["norm"] = norms[0]
    uniform = all(_one(stack["layers"]) for stack in stacks)
    for stack in stacks:
        blocks = stack.pop("layers")
        stack["layers"] = _count(stack.pop("same_as"))
        stack["block" if uniform else "each"] = blocks[0] if uniform else blocks
    first = stacks.pop(0) if a else {}
    return first, stacks.pop() if b else {}


def _copies(layers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Copy layers as mutable data; layers that are the same object stay the same object."""
    copies = {
        id(layer): {**layer, "attention": layer["attention"] and {**layer["attention"]}}
        for layer in distinct(layers)
    }
    return [copies[id(layer)] for layer in layers]


def _one(values: Sequence[Any]) -> bool:
    """Whether all values are equal."""
    return all(value == values[0] for value in distinct(values))


def _sole_position(stack: Mapping[str, Any]) -> Any:
    """The position of a stack; None if its layers have several."""
    acting = [layer["attention"]["position"] for layer in stack["layers"] if layer["attention"]]
    if not acting:
        return stack["position"] or full(NoPosition())
    if not _one(acting):
        return None
    if stack["position"] is None:
        return acting[0]
    return stack["position"] if acting[0]["kind"] == "none" else None


def _count(owners: list[int]) -> Any:
    """The number of layers, and the sets of layers with shared weights."""
    count = len(owners)
    if owners == list(range(count)):
        return count
    return {"repeat": count, "shared": True} if not any(owners) else {"repeat": count, "same_as": owners}


def _said_once(key: str, *models: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    """Move a key from the stacks to their models if the stacks of each model agree."""
    if all(_one([stack[key] for stack in stacks]) for _, stacks in models):
        for model, stacks in models:
            values = [stack.pop(key) for stack in stacks]
            model[key] = values[0]


def _in_stacks(
    a: dict[str, Any], b: dict[str, Any]
) -> Iterator[tuple[SpecPath, Any, Any, tuple[int, ...] | None]]:
    """The differences between two outlined stacks, with equal differences of several layers merged."""
    if not a or not b:
        yield (), a or None, b or None, None
        return
    layers_a, layers_b = a.pop("each", []), b.pop("each", [])
    for path, x, y in _differing(a, b, ()):
        yield path, x, y, None
    both = min(len(layers_a), len(layers_b))
    for path, x, y, layers in _in_layers(layers_a, layers_b):
        yield path, x, y, None if len(layers) == both else tuple(sorted(layers))
    for block, where in _unlike(layers_a, both):
        yield ("block",), block, None, where
    for block, where in _unlike(layers_b, both):
        yield ("block",), None, block, where


def _in_layers(a: Sequence[Any], b: Sequence[Any]) -> list[tuple[SpecPath, Any, Any, list[int]]]:
    """The differences between common layers, each with the layers it affects."""
    alike = defaultdict[tuple[int, int], list[int]](list)
    for i, pair in enumerate(zip(a, b, strict=False)):
        alike[id(pair[0]), id(pair[1])].append(i)
    merged: dict[str, tuple[SpecPath, Any, Any, list[int]]] = {}
    for layers in alike.values():
        for path, x, y in _differing(a[layers[0]], b[layers[0]], ("block",)):
            merged.setdefault(repr((path, x, y)), (path, x, y, []))[3].extend(layers)
    return list(merged.values())


def _unlike(layers: list[Any], count: int) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Yield the blocks of later layers that equal none of the first ``count``, with the layers of each."""
    texts = {id(block): repr(block) for block in distinct(layers)}
    seen = {texts[id(block)] for block in layers[:count]}
    others = defaultdict[str, list[int]](list)
    for i in range(count, len(layers)):
        if texts[id(layers[i])] not in seen:
            others[texts[id(layers[i])]].append(i)
    yield from ((layers[where[0]], tuple(where)) for where in others.values())


def _differing(a: Any, b: Any, path: SpecPath) -> Iterator[tuple[SpecPath, Any, Any]]:
    """Yield the differences of plain data; parts of different kinds are reported whole, without parts that both have."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = [*a, *(key for key in b if key not in a)]
        if a.get("kind") != b.get("kind"):
            keys = [key for key in a if _is_part(a[key]) and _is_part(b.get(key))]
            own = [{key: value for key, value in side.items() if key not in keys} for side in (a, b)]
            yield path, own[0], own[1]
        for key in keys:
            yield from _differing(a.get(key), b.get(key), (*path, key))
    elif a != b and not nearly_equal(a, b):
        yield path, a, b


def _is_part(value: Any) -> bool:
    return isinstance(value, Mapping) and "kind" in value


def _stated_in(model: Model, name: StackName, path: SpecPath, layers: tuple[int, ...] | None) -> Any:
    """The value that a spec states at a path of a stack or of some layers, before defaults."""
    stack = model.stack_named(name)
    if stack is not None and path[:1] == ("head",):  # the model also has a head
        return _within(stack.head, path[1:])
    return None if stack is None else _stated(model, stack, layers[0] if layers else 0, path or ("block",))


def _stated(model: Model, stack: Stack, layer: int, path: SpecPath) -> Any:
    """The value that a spec states at a path, before defaults."""
    uses = [run.use for run in stack.runs() for _ in range(run.repeat)]
    if layer >= len(uses):
        return None
    block = stack.named_block(uses[layer])
    match path:
        case "block", (
            "attention_norm" | "mixer_norm" | "cross_attention_norm" | "feed_forward_norm"
        ) as key, *rest:
            value: Any = block.norm_of(str(key).removesuffix("_norm"))
        case "block", "attention", "position", *rest:
            value = (block.attention and block.attention.own_position) or model.position_of(stack)
        case "block", *rest:
            value = block
        case "embedding", *rest:
            value = model.embedding_of(stack)
        case "position", *rest:
            value = model.position_of(stack)
        case ("context_length",):
            return model.context_length_of(stack)
        case ("d_model",):
            return model.width_of(stack)
        case ("causal",):
            return model.is_causal(next(name for name, other in model.stacks() if other is stack))
        case ("layers",):
            return _count(stack.owners())
        case key, *rest:
            value = field_values(model if key in Model.model_fields else stack)[str(key)]
    return _within(value, rest)


def _within(value: Any, path: Sequence[str | int]) -> Any:
    """The value at a path within a part of a spec."""
    for key in path:
        value = field_values(value).get(str(key))
    return value
