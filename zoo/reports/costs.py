"""FLOPs of every module in a forward pass, as polynomials in the sizes, from the traced graphs of a model.

One layer of each kind is traced; equal layers cost the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch.nn.functional as F
from torch import fx

from specs.model.model import Model
from zoo.builder import ZooModel
from zoo.core.collector import collector_paused
from zoo.core.facts import ACTIVE_SHARE
from zoo.core.graph_names import VISION_ENCODER
from zoo.core.reduced import fewer_layers
from zoo.core.remembering import remembered, remembered_by
from zoo.core.roles import ROLES
from zoo.core.state_names import is_present
from zoo.ops.saved import NodeInfos
from zoo.reports.flops import operations_without_entry
from zoo.reports.layers import layer_kinds
from zoo.reports.polynomial import Polynomial
from zoo.reports.roles import module_roles
from zoo.reports.spread import Spread
from zoo.reports.trace import Trace, outputs_by_name
from zoo.tracing.float_dtype import HALF
from zoo.tracing.task import ENCODER, Task
from zoo.tracing.tasks import cost_tasks
from zoo.tracing.traced_model import TracedModel, task_key


@dataclass(frozen=True)
class StageCosts:
    """The costs of one kind of call: FLOPs of each module, without its submodules.

    ``modules``: matrix products; ``elements``: everything else. ``weights``: the weight values that the call reads if it
    selects every expert, without embedding tables; ``outputs``: the values that it returns, without caches; ``estimated``: the
    operations without an entry in :mod:`zoo.ops`.
    """

    modules: Spread[Polynomial]
    elements: Spread[Polynomial]
    weights: Spread[int]
    outputs: Polynomial
    estimated: tuple[str, ...]

    @cached_property
    def total(self) -> Polynomial:
        """Matrix products of the whole model."""
        return _total(self.modules)

    @cached_property
    def total_elements(self) -> Polynomial:
        """FLOPs of the whole model outside matrix products."""
        return _total(self.elements)

    def under(self, path: str) -> Polynomial:
        """Matrix products of a module with its submodules; 0 if there is no such module."""
        return within(self.modules, path)

    def given(self, **sizes: int) -> StageCosts:
        """These costs with numbers for some of the symbols."""
        modules, elements = (
            part.mapped(lambda value: value.given(**sizes)) for part in (self.modules, self.elements)
        )
        return StageCosts(modules, elements, self.weights, self.outputs.given(**sizes), self.estimated)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        paths = dict.fromkeys([*self.modules, *self.elements])
        parts = {"matmul": self.modules, "other": self.elements}
        return {
            "matmul": self.total.as_dict(),
            "other": self.total_elements.as_dict(),
            "weights_read": sum(size * count for size, count in self.weights.counts()),
            "modules": {
                path: {name: part[path].as_dict() for name, part in parts.items() if path in part}
                for path in paths
            },
        }


@dataclass(frozen=True)
class Costs:
    """The stages of a model: ``forward`` for an encoder; ``prefill`` (no past) and ``step`` (one new token) for a decoder;
    plus ``encode``, with the keys and values that the decoder attends to, for an encoder-decoder.

    ``routed`` maps the path of a mixture's experts to the number selected per token and the total; ``roles`` maps the path of
    every module to its role.
    """

    name: str
    stages: Mapping[str, StageCosts]
    routed: Spread[tuple[int, int]]
    roles: Spread[str]

    def by_role(self, stage: str) -> dict[str, Polynomial]:
        """Matrix products of a stage by role, such as ``router``."""
        parts = defaultdict[str, list[Polynomial]](list)
        for paths, part in self.stages[stage].modules.groups():
            parts[self.roles[paths[0]]].append(part * len(paths))
        return {role: Polynomial.sum(parts[role]) for role in ROLES if role in parts}

    def share_of(self, path: str) -> tuple[int, int] | None:
        """The experts selected per token and their total, if a module belongs to experts."""
        around = (path[:index] for index, letter in enumerate(path) if letter == ".")
        return next((self.routed[outer] for outer in around if outer in self.routed), None)

    @cached_property
    def weights_by_share(self) -> dict[str, dict[tuple[int, int] | None, int]]:
        """The weight values that each stage reads: of experts by the number selected per token and the total, others under None."""
        stages: dict[str, dict[tuple[int, int] | None, int]] = {}
        for name, stage in self.stages.items():
            read = stages[name] = defaultdict(int)
            for paths, size in stage.weights.groups():
                read[self.share_of(paths[0])] += size * len(paths)
        return stages

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            name: {
                **stage.as_dict(),
                "roles": {role: part.as_dict() for role, part in self.by_role(name).items()},
            }
            for name, stage in self.stages.items()
        }


def _total(parts: Spread[Polynomial]) -> Polynomial:
    return Polynomial.sum(part * count for part, count in parts.counts())


def within(parts: Mapping[str, Polynomial], path: str) -> Polynomial:
    """The sum over a module and its submodules; over all modules for the empty path."""
    return Polynomial.sum(
        part
        for module_path, part in parts.items()
        if not path or module_path == path or module_path.startswith(f"{path}.")
    )


@collector_paused()
def costs(spec: Model) -> Costs:
    """The costs of each stage of a spec's model.

    Raises :class:`zoo.tracing.tracer.UntraceableError`, and :class:`specs.base.errors.UserError` for a component whose
    cost is not a polynomial.
    """
    small = fewer_layers(spec, layers=1)
    reduced, kinds = _reduced(small), layer_kinds(spec, small)
    once = _owned(spec, kinds)
    stages = {
        name: StageCosts(
            Spread(stage.modules, kinds),
            Spread(stage.elements, kinds),
            Spread(stage.weights, once),
            stage.outputs,
            stage.estimated,
        )
        for name, stage in reduced.stages.items()
    }
    return Costs(spec.name, stages, Spread(reduced.routed, kinds), Spread(reduced.roles, kinds))


@dataclass(frozen=True)
class _ReducedStage:
    """The fields of :class:`StageCosts` for a model with one layer of each kind."""

    modules: Mapping[str, Polynomial]
    elements: Mapping[str, Polynomial]
    weights: Mapping[str, int]
    outputs: Polynomial
    estimated: tuple[str, ...]

    def followed_by(self, other: _ReducedStage) -> _ReducedStage:
        """One stage of two parts without common modules, of which the second computes the outputs."""
        return _ReducedStage(
            {**self.modules, **other.modules},
            {**self.elements, **other.elements},
            {**self.weights, **other.weights},
            other.outputs,
            tuple(dict.fromkeys((*self.estimated, *other.estimated))),
        )


@dataclass(frozen=True)
class _ReducedCosts:
    """The fields of :class:`Costs` for a model with one layer of each kind."""

    stages: Mapping[str, _ReducedStage]
    routed: Mapping[str, tuple[int, int]]
    roles: Mapping[str, str]


@remembered
def _reduced(small: Model) -> _ReducedCosts:
    traced = TracedModel(small, HALF)  # casts cost nothing; sizes in all dtypes follow
    model, stages = traced.model, dict[str, _ReducedStage]()
    for task in cost_tasks(model, small, traced.outputs):
        for name, stage in _stages((traced, task)).items():
            stages[name] = stages[name].followed_by(stage) if name in stages else stage
    roles = {path: role for role, _, path in module_roles(model)}
    traced.hand_on()
    return _ReducedCosts(stages, _expert_shares(model), roles)


@remembered_by(task_key)
def _stages(subject: tuple[TracedModel, Task]) -> dict[str, _ReducedStage]:
    """The stages of a task."""
    traced, task = subject
    graph = traced.trace(task).graph
    if task.name == ENCODER:
        return {"encode": _stage(Trace(graph, task))}
    if task.name == VISION_ENCODER:
        return {"see": _stage(Trace(graph, task))}
    if traced.spec.decoder is None:
        return {"forward": _stage(Trace(graph, task))}
    return {"prefill": _stage(Trace(graph, task, P=0)), "step": _stage(Trace(graph, task, T=1))}


def _stage(trace: Trace) -> _ReducedStage:
    modules, elements = (defaultdict[str, list[Polynomial]](list) for _ in range(2))
    for node in trace.calls:
        path = node.meta["path"]
        products, other = trace.flops(node)
        if products:
            modules[path].append(products)
        if other:
            elements[path].append(other)
    at_modules, at_elements = (
        {path: Polynomial.sum(terms) for path, terms in part.items()} for part in (modules, elements)
    )
    outputs = Polynomial.sum(
        trace.polynomial(node, partial(_values, node))
        for name, node in outputs_by_name(trace.graph).items()
        if not is_present(name)
    )
    return _ReducedStage(
        at_modules, at_elements, _weights(trace), outputs, operations_without_entry(trace.calls)
    )


def _values(node: fx.Node, infos: NodeInfos) -> int:
    elements: int = infos[node].elements
    return elements


def _weights(trace: Trace) -> dict[str, int]:
    """The sizes of weights by module, without embedding tables."""
    sizes = defaultdict[str, int](int)
    for node in trace.graph.nodes:
        if node.op == "get_attr" and any(user.target is not F.embedding for user in node.users):
            sizes[str(node.target).rpartition(".")[0]] += math.prod(node.meta["info"][0].shape)
    return dict(sizes)


def _owned(spec: Model, kinds: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """The layers of each kind with weights of their own: a shared layer counts once."""
    owned: dict[str, set[int]] = {name: set(stack.owners()) for name, stack in spec.stacks()}
    return {
        kind: [layer for layer in layers if layer in owned[kind.split(".")[0]]]
        for kind, layers in kinds.items()
    }


def _expert_shares(model: ZooModel) -> dict[str, tuple[int, int]]:
    """By path of a mixture's experts: the number selected per token and the total."""
    return {
        path: share
        for path, module in model.named_modules()
        if (share := ACTIVE_SHARE.of(module)) is not None
    }
