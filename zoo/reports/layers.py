"""Kinds of layers: a reduced model has one layer of each kind; one more layer shows the kind's contribution."""

from __future__ import annotations

from collections import defaultdict

from specs.model.model import Model


def layer_kinds(spec: Model, small: Model) -> dict[str, list[int]]:
    """For each layer of a reduced model, such as ``decoder.blocks.0``, the layers that it represents."""
    kinds = defaultdict(list)
    for name, stack in spec.stacks():
        kept = getattr(small, name).layer_kinds()
        places = {kind: kept.index(kind) for kind in dict.fromkeys(kept)}
        for layer, kind in enumerate(stack.layer_kinds()):
            kinds[f"{name}.blocks.{places[kind]}"].append(layer)
    return kinds


def with_another(small: Model, kind: str) -> Model:
    """The reduced model with one more layer of a kind."""
    name, _, index = kind.split(".")
    stack = getattr(small, name)
    runs = list(stack.runs())
    runs[int(index)] = runs[int(index)].model_copy(update={"repeat": 2})
    return small.model_copy(update={name: stack.model_copy(update={"layers": tuple(runs)})})
