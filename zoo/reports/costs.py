"""What a forward pass costs, read from the traced graphs of a model: FLOPs of every module, as polynomials in the sizes.

One layer of each kind is traced; equal layers cost the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import fx

from specs.model import Model
from zoo.builder import ZooModel, assemble
from zoo.components.mixture import Mixture
from zoo.reports.layers import layer_kinds
from zoo.reports.polynomial import Polynomial
from zoo.reports.spread import Spread
from zoo.reports.trace import Sizes, Trace, outputs_by_name
from zoo.reports.work import elements_at, products_at
from zoo.tracing.tasks import ENCODER, Task, tasks
from zoo.twin import twin


@dataclass(frozen=True)
class Stage:
    """One way to call a model: FLOPs at each module itself, not in those within it.

    ``modules`` has matrix products, of all experts; ``active`` the same with only the experts that tokens are
    sent to, as a runtime that routes computes them; ``elements`` all that is no matrix product.
    ``weights`` are the values that the call reads of weights, without tables of which it looks rows up; ``outputs`` the
    values that it gives beside caches.
    """

    modules: Spread[Polynomial]
    active: Spread[Polynomial]
    elements: Spread[Polynomial]
    weights: Spread[int]
    outputs: Polynomial

    @property
    def total(self) -> Polynomial:
        """Matrix products of the whole model."""
        return _total(self.modules)

    @property
    def total_active(self) -> Polynomial:
        """Matrix products of the whole model with only the experts that tokens are sent to."""
        return _total(self.active)

    @property
    def total_elements(self) -> Polynomial:
        """All of the whole model that is no matrix product."""
        return _total(self.elements)

    def under(self, path: str) -> Polynomial:
        """Matrix products of a module with those within it; 0 where there is none."""
        return within(self.modules, path)

    def given(self, **sizes: int) -> Stage:
        """The same with numbers for some of the symbols."""
        modules, active, elements = (
            part.mapped(lambda each: each.given(**sizes))
            for part in (self.modules, self.active, self.elements)
        )
        return Stage(modules, active, elements, self.weights, self.outputs.given(**sizes))

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        paths = dict.fromkeys([*self.modules, *self.elements])
        parts = {"matmul": self.modules, "matmul_active": self.active, "other": self.elements}
        return {
            "matmul": self.total.as_dict(),
            "matmul_active": self.total_active.as_dict(),
            "other": self.total_elements.as_dict(),
            "weights_read": sum(size * count for size, count in self.weights.counts()),
            "modules": {
                path: {name: part[path].as_dict() for name, part in parts.items() if path in part}
                for path in paths
            },
        }


@dataclass(frozen=True)
class Costs:
    """The stages of a model: ``forward`` of an encoder; ``prefill`` (no past) and ``step`` (one new token) of a decoder;
    ``encode`` before those where there are both, with the keys and values that the decoder attends to.

    ``routed`` has the paths of mixtures' experts, with how many of how many a token is sent to.
    """

    name: str
    stages: Mapping[str, Stage]
    routed: Spread[tuple[int, int]]

    def share_of(self, path: str) -> tuple[int, int] | None:
        """How many of how many experts a token is sent to, where a module is of experts."""
        around = (path[:place] for place, letter in enumerate(path) if letter == ".")
        return next((self.routed[outer] for outer in around if outer in self.routed), None)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {name: stage.as_dict() for name, stage in self.stages.items()}


def _total(parts: Spread[Polynomial]) -> Polynomial:
    return Polynomial.sum(part * count for part, count in parts.counts())


def within(parts: Mapping[str, Polynomial], path: str) -> Polynomial:
    """The sum of what modules have at a path and below; all for the empty path."""
    return Polynomial.sum(
        part for each, part in parts.items() if not path or each == path or each.startswith(f"{path}.")
    )


def costs(spec: Model) -> Costs:
    """What each stage of a spec's model costs.

    Raises :class:`zoo.tracing.tracer.UntraceableError`, and :class:`specs.errors.UserError` for a component whose
    cost is no polynomial.
    """
    small = twin(spec, layers=1)
    model = assemble(small)
    stages: dict[str, Stage] = {}
    for task in tasks(model, small):
        stage = _stage(model, spec, small, task)
        if task.name == ENCODER:
            stages["encode"] = stage
        elif spec.decoder is None:
            stages["forward"] = stage
        else:
            stages |= {"prefill": stage.given(P=0), "step": stage.given(T=1)}
    return Costs(spec.name, stages, Spread(expert_shares(model), layer_kinds(spec, small)))


def _stage(model: ZooModel, spec: Model, small: Model, task: Task) -> Stage:
    trace, shares = Trace(model, task), expert_shares(model)
    modules, active, elements = (defaultdict[str, list[Polynomial]](list) for _ in range(3))
    for node in trace.calls:
        path = node.meta["path"]
        if products := trace.polynomial(node, partial(products_at, node)):
            modules[path].append(products)
            active[path].append(share(products, shares.get(path)))
        if other := trace.polynomial(node, partial(elements_at, node)):
            elements[path].append(other)
    kinds = layer_kinds(spec, small)
    at_modules, at_active, at_elements = (
        Spread({path: Polynomial.sum(each) for path, each in part.items()}, kinds)
        for part in (modules, active, elements)
    )
    outputs = Polynomial.sum(
        trace.polynomial(node, partial(_values, node))
        for name, node in outputs_by_name(trace.graph).items()
        if not name.startswith("present")
    )
    return Stage(at_modules, at_active, at_elements, _weights(trace, spec, kinds), outputs)


def _values(node: fx.Node, sizes: Sizes) -> int:
    return math.prod(sizes[node].shape)


def _weights(trace: Trace, spec: Model, kinds: Mapping[str, list[int]]) -> Spread[int]:
    """The sizes of the weights that are read whole, each layer's once, wherever else it stands."""
    owned: dict[str, set[int]] = {name: set(stack.owners()) for name, stack in spec.stacks()}
    once = {
        kind: [layer for layer in layers if layer in owned[kind.split(".")[0]]]
        for kind, layers in kinds.items()
    }
    sizes = defaultdict[str, int](int)
    for node in trace.graph.nodes:
        if node.op == "get_attr" and any(user.target is not F.embedding for user in node.users):
            sizes[str(node.target).rpartition(".")[0]] += math.prod(node.meta["facts"][0].shape)
    return Spread(sizes, once)


def expert_shares(model: ZooModel) -> dict[str, tuple[int, int]]:
    """Of the modules of experts, by path: how many of how many a token is sent to."""
    mixtures = {
        f"{path}.experts": module for path, module in model.named_modules() if isinstance(module, Mixture)
    }
    return {path: (module.router.top_k, module.router.out_features) for path, module in mixtures.items()}


def share(products: Polynomial, experts: tuple[int, int] | None) -> Polynomial:
    """What is left of the products of all experts for some of them."""
    return products if experts is None else products * experts[0] // experts[1]
