"""The graph of a task, with figures of its calls as polynomials in the sizes of its inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import fx

from specs.base.errors import UserError
from zoo.builder import ZooModel
from zoo.ops.elementwise import CASTS, keeps_dtype
from zoo.ops.flops import no_flops
from zoo.ops.operation import CALLS, operation_of, target_name
from zoo.ops.saved import NodeInfos
from zoo.reports.flops import flops_at
from zoo.reports.polynomial import BATCH, Interpolation, Polynomial
from zoo.tracing.float_dtype import info_in_dtype
from zoo.tracing.sizing import SizedGraph
from zoo.tracing.symbols import summands
from zoo.tracing.task import FRAMES, IMAGES, VECTORS, WORDS, Task
from zoo.tracing.traced_model import TaskTrace

SYMBOLS = {
    "batch_size": BATCH,
    "text_batch_size": BATCH,
    "image_batch_size": BATCH,
    IMAGES: BATCH,
    "sequence_length": "T",
    FRAMES: "T",
    WORDS: "T",
    "decoder_sequence_length": "T",
    "past_sequence_length": "P",
    "past_decoder_sequence_length": "P",
    "encoder_sequence_length": "S",
    VECTORS: "S",
}
"""The symbol of each named size of a task; T is the length of an encoder-only model."""


_NOTHING = Polynomial({}), Polynomial({})


def traced(model: ZooModel, task: Task) -> fx.Graph:
    """The graph of a task. Raises :class:`zoo.tracing.tracer.UntraceableError`."""
    return TaskTrace.of(model, task).graph


class Trace:
    """The graph of a task, with numbers for some of the symbols: a single token is computed differently from many."""

    def __init__(self, graph: fx.Graph, task: Task, **fixed: int) -> None:
        self.graph = graph
        dims = [
            part
            for placeholder in task.inputs
            for dim in placeholder.dims
            if isinstance(dim, str)
            for part in summands(task.derived[dim].source if dim in task.derived else dim)
        ]
        symbols = dict.fromkeys(SYMBOLS[name] for name in dims)
        batches = len({name for name in dims if SYMBOLS[name] == BATCH})
        self._interpolation = Interpolation.over(
            (symbol for symbol in symbols if symbol not in fixed), batches
        )
        self._sized = SizedGraph(
            self.graph,
            task.inputs,
            [
                task.numbers({name: {**point, **fixed}[SYMBOLS[name]] for name in dims})
                for point in self._interpolation.points
            ],
        )
        self._known: dict[tuple[int, ...], Polynomial] = {}
        self._flops: dict[fx.Node, tuple[Polynomial, Polynomial]] = {}

    def to_float32(self) -> None:
        """Make this the trace of the same model with weights in float32 in place of float16, in which nothing is cast.

        FLOPs do not depend on the dtype.
        """
        in_float32 = partial(info_in_dtype, dtype=torch.float32)
        for node in self.graph.nodes:
            if "info" in node.meta:
                node.meta["info"] = in_float32(node.meta["info"])
        for node in self.graph.nodes:
            if node.target in CASTS and keeps_dtype(node):
                node.replace_all_uses_with(node.all_input_nodes[0])
                self.graph.erase_node(node)
        self._sized.map_infos(in_float32)

    @property
    def calls(self) -> list[fx.Node]:
        """The calls, in order."""
        return [node for node in self.graph.nodes if node.op in CALLS]

    def polynomial(self, node: fx.Node, number: Callable[[NodeInfos], int]) -> Polynomial:
        """A figure of ``node`` as a polynomial in the sizes.

        Raises :class:`specs.base.errors.UserError` if it is not one.
        """
        return self._through(node, tuple(map(number, self._sized.by_point)))

    def flops(self, node: fx.Node) -> tuple[Polynomial, Polynomial]:
        """FLOPs of a call: matrix products, and everything else. Raises the errors of :meth:`polynomial`."""
        entry = operation_of(node.target)
        if entry is not None and entry.flops is no_flops:
            return _NOTHING
        first = self._sized.same_call[node]
        if first not in self._flops:
            costs = self._sized.once_each(first, flops_at)
            self._flops[first] = (
                self._through(node, tuple(flops.matmul for flops in costs)),
                self._through(node, tuple(flops.other for flops in costs)),
            )
        return self._flops[first]

    def _through(self, node: fx.Node, values: tuple[int, ...]) -> Polynomial:
        """The polynomial with these values at the points."""
        if values not in self._known:
            try:
                self._known[values] = self._interpolation.polynomial(values)
            except ValueError as error:
                raise UserError(
                    f"The cost of {node.meta.get('path') or 'the model'} is {error}\n  value: {target_name(node.target)}"
                ) from None
        return self._known[values]


def outputs_by_name(graph: fx.Graph) -> dict[str, fx.Node]:
    """The outputs of a graph."""
    return next(node.args[0] for node in graph.nodes if node.op == "output")
