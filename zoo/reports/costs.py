"""What a forward pass costs, read from the traced graphs of a model: FLOPs of every module, as polynomials in the sizes.

One layer of each kind is traced; equal layers cost the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import fx

from specs.errors import UserError
from specs.model import Model
from zoo.builder import ZooModel, assemble
from zoo.components.mixture import Mixture
from zoo.reports.polynomial import BATCH, Interpolation, Polynomial
from zoo.reports.work import work_of
from zoo.tracing.sizing import facts_at
from zoo.tracing.symbols import SUM, Symbols
from zoo.tracing.tasks import Task, tasks
from zoo.tracing.tracer import Tracer
from zoo.twin import twin

SYMBOLS = {
    "batch_size": BATCH,
    "sequence_length": "T",
    "decoder_sequence_length": "T",
    "past_sequence_length": "P",
    "past_decoder_sequence_length": "P",
    "encoder_sequence_length": "S",
}
"""The symbol of each named size of a task; an encoder alone has T tokens."""


@dataclass(frozen=True)
class Stage:
    """One way to call a model: FLOPs at each module itself, not in those within it.

    ``modules`` has matrix products, of all experts; ``active`` the same with only the experts that tokens are
    sent to, as a runtime that routes computes them; ``elements`` all that is no matrix product.
    """

    modules: Mapping[str, Polynomial]
    active: Mapping[str, Polynomial]
    elements: Mapping[str, Polynomial]

    @property
    def total(self) -> Polynomial:
        """Matrix products of the whole model."""
        return Polynomial.sum(self.modules.values())

    @property
    def total_active(self) -> Polynomial:
        """Matrix products of the whole model with only the experts that tokens are sent to."""
        return Polynomial.sum(self.active.values())

    @property
    def total_elements(self) -> Polynomial:
        """All of the whole model that is no matrix product."""
        return Polynomial.sum(self.elements.values())

    def under(self, path: str) -> Polynomial:
        """Matrix products of a module with those within it; 0 where there is none."""
        return within(self.modules, path)

    def given(self, **sizes: int) -> Stage:
        """The same with numbers for some of the symbols."""
        parts = (self.modules, self.active, self.elements)
        return Stage(*({path: each.given(**sizes) for path, each in part.items()} for part in parts))

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        paths = dict.fromkeys([*self.modules, *self.elements])
        parts = {"matmul": self.modules, "matmul_active": self.active, "other": self.elements}
        return {
            "matmul": self.total.as_dict(),
            "matmul_active": self.total_active.as_dict(),
            "other": self.total_elements.as_dict(),
            "modules": {
                path: {name: part[path].as_dict() for name, part in parts.items() if path in part}
                for path in paths
            },
        }


@dataclass(frozen=True)
class Costs:
    """The stages of a model: ``forward`` of an encoder; ``prefill`` (no past) and ``step`` (one new token) of a decoder;
    ``encode`` before those where there are both, with the keys and values that the decoder attends to.
    """

    name: str
    stages: Mapping[str, Stage]

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {name: stage.as_dict() for name, stage in self.stages.items()}


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
        if task.name == "encoder_model":
            stages["encode"] = stage
        elif spec.decoder is None:
            stages["forward"] = stage
        else:
            stages |= {"prefill": stage.given(P=0), "step": stage.given(T=1)}
    return Costs(spec.name, stages)


def _stage(model: ZooModel, spec: Model, small: Model, task: Task) -> Stage:
    graph = Tracer(model, Symbols.of(task.inputs, (), task.sums)).run(task.call, task.inputs)
    shares = _shares(model)
    modules, active, elements = (defaultdict[str, list[Polynomial]](list) for _ in range(3))
    for path, products, other in _polynomials(graph, task):
        if products:
            modules[path].append(products)
            top_k, experts = shares.get(path, (1, 1))
            active[path].append(products * top_k // experts)
        if other:
            elements[path].append(other)
    places = _places(spec, small)
    return Stage(*(_spread(part, places) for part in (modules, active, elements)))


def _polynomials(graph: fx.Graph, task: Task) -> Iterator[tuple[str, Polynomial, Polynomial]]:
    """The matrix products and element operations of every call, with the path of its module."""
    dims = [
        part for given in task.inputs for dim in given.dims if isinstance(dim, str) for part in dim.split(SUM)
    ]
    names = {name: SYMBOLS[name] for name in dims}
    interpolation = Interpolation.over(dict.fromkeys(names.values()))
    facts = [
        facts_at(graph, task.inputs, {name: point[symbol] for name, symbol in names.items()})
        for point in interpolation.points
    ]
    known: dict[tuple[int, ...], Polynomial] = {}
    for node in graph.nodes:
        if node.op not in ("call_function", "call_method"):
            continue
        work = [
            work_of(
                node.target,
                fx.map_arg(node.args, at.__getitem__),
                fx.map_arg(node.kwargs, at.__getitem__),
                at[node],
            )
            for at in facts
        ]
        path, found = node.meta["path"], []
        for values in (tuple(each.products for each in work), tuple(each.elements for each in work)):
            if values not in known:
                try:
                    known[values] = interpolation.polynomial(values)
                except ValueError as error:
                    raise UserError(
                        f"the cost of {path or 'the model'} is {error}\n  it calls {node.target}"
                    ) from None
            found.append(known[values])
        yield path, found[0], found[1]


def _shares(model: ZooModel) -> dict[str, tuple[int, int]]:
    """Of the modules of experts, how many of how many a token is sent to."""
    mixtures = {
        f"{path}.experts": module for path, module in model.named_modules() if isinstance(module, Mixture)
    }
    return {path: (module.router.top_k, module.router.out_features) for path, module in mixtures.items()}


def _places(spec: Model, small: Model) -> dict[str, list[str]]:
    """The paths of the layers that each layer of the twin stands for."""
    places = defaultdict(list)
    for name, stack in spec.stacks():
        kept = getattr(small, name).layer_blocks()
        for layer, block in enumerate(stack.layer_blocks()):
            places[f"{name}.blocks.{kept.index(block)}"].append(f"{name}.blocks.{layer}")
    return places


def _spread(parts: Mapping[str, list[Polynomial]], places: Mapping[str, list[str]]) -> dict[str, Polynomial]:
    """The sum at each path, with that of a layer of the twin at all layers that it stands for."""
    spread: dict[str, Polynomial] = {}
    for path, polynomials in parts.items():
        total = Polynomial.sum(polynomials)
        layer, rest = ".".join(path.split(".")[:3]), path.split(".")[3:]
        for place in places.get(layer, [layer]):
            spread[".".join([place, *rest])] = total
    return spread
