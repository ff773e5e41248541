"""A task of a model as a graph, and what its calls come to as polynomials in the sizes of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import fx

from specs.errors import UserError
from zoo.builder import ZooModel
from zoo.reports.polynomial import BATCH, Interpolation, Polynomial
from zoo.tracing.sizing import facts_at
from zoo.tracing.symbols import SUM, Symbols
from zoo.tracing.tasks import Task
from zoo.tracing.tracer import Tracer

SYMBOLS = {
    "batch_size": BATCH,
    "sequence_length": "T",
    "decoder_sequence_length": "T",
    "past_sequence_length": "P",
    "past_decoder_sequence_length": "P",
    "encoder_sequence_length": "S",
}
"""The symbol of each named size of a task; an encoder alone has T tokens."""

Sizes = Mapping[fx.Node, Any]
"""The facts of every value of a graph at some numbers."""


class Trace:
    """The graph of a task.  Raises :class:`zoo.tracing.tracer.UntraceableError`."""

    def __init__(self, model: ZooModel, task: Task) -> None:
        self.graph = Tracer(model, Symbols.of(task.inputs, (), task.sums)).run(task.call, task.inputs)
        dims = [
            part
            for each in task.inputs
            for dim in each.dims
            if isinstance(dim, str)
            for part in dim.split(SUM)
        ]
        self._interpolation = Interpolation.over(dict.fromkeys(SYMBOLS[name] for name in dims))
        self._sizes = [
            facts_at(self.graph, task.inputs, {name: point[SYMBOLS[name]] for name in dims})
            for point in self._interpolation.points
        ]
        self._known: dict[tuple[int, ...], Polynomial] = {}

    @property
    def calls(self) -> list[fx.Node]:
        """The calls, in order."""
        return [node for node in self.graph.nodes if node.op in ("call_function", "call_method")]

    def polynomial(self, node: fx.Node, number: Callable[[Sizes], int]) -> Polynomial:
        """A number that follows from the sizes, as a polynomial; ``node`` is whose it is.

        Raises :class:`specs.errors.UserError` where it is none.
        """
        values = tuple(map(number, self._sizes))
        if values not in self._known:
            try:
                self._known[values] = self._interpolation.polynomial(values)
            except ValueError as error:
                name = getattr(node.target, "__name__", node.target)
                raise UserError(
                    f"what {node.meta['path'] or 'the model'} costs is {error}\n  it calls {name}, whose result has other sizes"
                ) from None
        return self._known[values]


def outputs_by_name(graph: fx.Graph) -> dict[str, fx.Node]:
    """The outputs of a graph."""
    return next(node.args[0] for node in graph.nodes if node.op == "output")
