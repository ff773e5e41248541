"""From a traced graph to an ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import torch
from torch import fx

from exporters.graph.builder import GraphBuilder
from exporters.graph.dtypes import DTYPES
from exporters.graph.emitters.registry import emit, emitter_of, learn
from exporters.graph.fusing.functions import group_query_attention
from exporters.graph.quantization.scheme import Quantization
from exporters.graph.values import Graph, Parameter, Value
from exporters.target.targets import Target
from specs.base.errors import UserError, option_name
from zoo.core.caller import line_text
from zoo.ops import TensorInfo, target_name
from zoo.ops.operation import CALLS
from zoo.tracing.symbols import Placeholder, Symbols


class NoEmitterError(UserError):
    """A model calls a function without an ONNX emitter; the message names the module and the function."""


class Lowering:
    """The ONNX operations of a trace, with weights declared but without values; ``adapted`` are the weights that adapters may change.

    Raises :class:`NoEmitterError`.
    """

    def __init__(
        self,
        traced: fx.Graph,
        target: Target,
        symbols: Symbols,
        inputs: Sequence[Placeholder],
        quantization: Quantization | None = None,
        adapted: frozenset[str] = frozenset(),
    ) -> None:
        self._traced, self._quantization = traced, quantization
        in_place = [node.args[1:3] for node in traced.nodes if node.target is group_query_attention]
        buffers = frozenset(str(past.target) for pair in in_place for past in pair)
        self._builder = GraphBuilder(target, symbols, inputs, buffers, quantization, adapted)
        self._values: dict[fx.Node, Any] = {}
        self._readers = set[fx.Node]()
        for node in traced.nodes:
            self._builder.reads_weights = False
            match node.op:
                case "placeholder":
                    self._values[node] = self._builder.inputs[str(node.target)]
                case "get_attr":
                    self._values[node] = _weight(self._builder, node)
                case "output":
                    continue
                case _:
                    self._values[node] = _emitted(self._builder, node, self._values)
            if self._builder.reads_weights or any(read.op == "get_attr" for read in node.all_input_nodes):
                self._readers.add(node)

    def graph(self, name: str, *, half_scores: bool = False) -> Graph:
        """The graph of everything that the outputs depend on; ``half_scores`` casts the output ``logits`` to float16."""
        for node in self._outputs().values():
            _describe(self._values[node], node, self._builder.symbols)
        outputs = {label: self._values[node] for label, node in self._outputs().items()}
        if half_scores and (scores := outputs.get("logits")) and scores.dtype != torch.float16:
            half = self._builder.op("Cast", scores, to=int(DTYPES[torch.float16]))
            half.dtype, half.dims = torch.float16, scores.dims
            outputs["logits"] = half
        return self._builder.graph(name, outputs)

    def parameters(self, quantization: Quantization | None) -> dict[str, Parameter]:
        """The tensors of the data file of the same graph with its weights in another quantization, in order.

        Only the calls that read weights are lowered again: what the others write does not depend on the quantization.
        """
        if quantization is self._quantization:
            return self._builder.parameters(self._live)
        builder = self._builder.requantized(quantization)
        values, results = dict(self._values), list[Value]()
        for node in self._traced.nodes:
            if node in self._readers:
                again = _weight if node.op == "get_attr" else partial(_emitted, values=values)
                values[node] = again(builder, node)
                if not self._readers.issuperset(node.users):
                    before, after = _listed(self._values[node]), _listed(values[node])
                    results += [
                        new
                        for old, new in zip(before, after, strict=True)
                        if self._builder.unshaped(old) in self._live
                    ]
            elif node.op in CALLS:
                learn(builder, values[node], node)
        return builder.parameters(builder.needed(results)[1])

    @cached_property
    def _live(self) -> set[Value]:
        """All values that the outputs depend on."""
        return self._builder.needed(self._values[node] for node in self._outputs().values())[1]

    def _outputs(self) -> dict[str, fx.Node]:
        outputs: dict[str, fx.Node] = next(node.args[0] for node in self._traced.nodes if node.op == "output")
        return outputs


def _weight(builder: GraphBuilder, node: fx.Node) -> Value:
    info = node.meta["info"][0]
    return builder.parameter(str(node.target), info.shape, info.dtype)


def _emitted(builder: GraphBuilder, node: fx.Node, values: Mapping[fx.Node, Any]) -> Any:
    """The result of a call. Raises :class:`NoEmitterError`."""
    builder.path = node.meta.get("path", "")
    try:
        value = emit(builder, node, values)
    except NotImplementedError as error:
        known = emitter_of(node.target) is not None
        reason = "no ONNX emitter for these arguments" if known else "no ONNX emitter"
        raise _refusal(builder.path, node, reason, str(error)) from error
    _describe(value, node, builder.symbols)
    learn(builder, value, node)
    return value


def _listed(result: Any) -> Sequence[Value]:
    """The values of a call with one result or several."""
    return result if isinstance(result, tuple | list) else (result,)


def _refusal(path: str, node: fx.Node, reason: str, detail: str) -> NoEmitterError:
    line = f"\n  at {line_text(node.meta['line'])}" if node.meta.get("line") else ""
    return NoEmitterError(
        f"{path or 'The model'} calls {target_name(node.target)}, which has {reason}{line}\n"
        f"  {detail}, or export with {option_name('via')} torch."
    )


def _describe(value: Value, node: fx.Node, symbols: Symbols) -> None:
    """Set the shape and dtype of a traced result on its ONNX value."""
    first, second = node.meta["info"]
    if isinstance(first, TensorInfo) and value.node is not None:
        value.dims = tuple(symbols.name(sizes) for sizes in zip(first.shape, second.shape, strict=True))
        value.dtype = first.dtype
