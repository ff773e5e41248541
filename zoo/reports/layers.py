"""Kinds of layers: a reduced model has one layer of each kind; a second one shows what each further layer adds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from specs.model.model import Model
from specs.model.stack import LayerRun, Stack


def layer_kinds(spec: Model, small: Model) -> dict[str, list[int]]:
    """For each layer of a reduced model, such as ``decoder.blocks.0``, the layers that it represents."""
    kinds = defaultdict(list)
    for name, stack in spec.stacks():
        kept = small.stack(name).layer_kinds()
        places = {kind: kept.index(kind) for kind in dict.fromkeys(kept)}
        for layer, kind in enumerate(stack.layer_kinds()):
            kinds[f"{name}.blocks.{places[kind]}"].append(layer)
    return kinds


def with_second_layers(small: Model, kinds: Mapping[str, Sequence[int]]) -> tuple[Model, dict[str, int]]:
    """The reduced model with a second layer of each kind that represents several layers, and for each of its layers the number
    of layers that it then represents: a second one all but the first."""
    counts: dict[str, int] = {}
    stacks: dict[str, Stack] = {}
    for name, stack in small.stacks():
        runs = list[LayerRun]()
        represented = list[int]()
        for index, run in enumerate(stack.runs()):
            layers = len(kinds[f"{name}.blocks.{index}"])
            runs.append(run.model_copy(update={"repeat": min(2, layers)}))
            represented += [1, layers - 1][: min(2, layers)]
        queries = stack.queries
        if queries is not None:
            passed = sum(run.repeat for run in runs[-queries.layers :])
            queries = queries.model_copy(update={"layers": passed})
        stacks[name] = stack.model_copy(update={"layers": tuple(runs), "queries": queries})
        counts |= {f"{name}.blocks.{index}": count for index, count in enumerate(represented)}
    return small.model_copy(update=stacks), counts
