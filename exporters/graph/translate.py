"""From a traced graph to an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence

from torch import fx, nn

from exporters.graph.builder import GraphBuilder
from exporters.graph.emitters.registry import emit, emitter_of
from exporters.graph.fusing.functions import group_query_attention
from exporters.graph.quantization.scheme import Quantization
from exporters.graph.values import Graph, Value
from exporters.target.targets import Target
from specs.base.errors import UserError, option_name
from zoo.core.caller import line_text
from zoo.ops import TensorInfo
from zoo.tracing.symbols import Placeholder, Symbols


class NoEmitterError(UserError):
    """A model calls a function without an ONNX emitter; the message names the module and the function."""


def lower(
    traced: fx.Graph,
    name: str,
    model: nn.Module,
    target: Target,
    symbols: Symbols,
    inputs: Sequence[Placeholder],
    quantization: Quantization | None = None,
    adapted: frozenset[str] = frozenset(),
) -> Graph:
    """The ONNX graph of a trace, with weights declared but without values; ``adapted`` are the weights that adapters may change.

    Raises :class:`NoEmitterError`.
    """
    in_place = [node.args[1:3] for node in traced.nodes if node.target is group_query_attention]
    buffers = frozenset(str(past.target) for pair in in_place for past in pair)
    builder = GraphBuilder(target, symbols, inputs, buffers, quantization, adapted)
    values: dict[fx.Node, Value] = {}
    outputs: dict[str, Value] = {}

    for node in traced.nodes:
        builder.path = node.meta.get("path", "")
        match node.op:
            case "placeholder":
                values[node] = builder.inputs[str(node.target)]
            case "get_attr":
                info = node.meta["info"][0]
                values[node] = builder.parameter(str(node.target), info.shape, info.dtype)
            case "output":
                for label, result in node.args[0].items():
                    outputs[label] = values[result]
                    _describe(values[result], result, symbols)
            case _:
                try:
                    values[node] = emit(builder, node, values)
                except NotImplementedError as error:
                    known = emitter_of(node.target) is not None
                    reason = "no ONNX emitter for these arguments" if known else "no ONNX emitter"
                    raise _refusal(builder.path, node, reason, str(error)) from error
                _describe(values[node], node, symbols)
                _learn(builder, values[node], node)
    return builder.graph(name, outputs)


def _refusal(path: str, node: fx.Node, reason: str, detail: str) -> NoEmitterError:
    function = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", node.target)
    line = f"\n  at {line_text(node.meta['line'])}" if node.meta.get("line") else ""
    return NoEmitterError(
        f"{path or 'The model'} calls {function}, which has {reason}{line}\n"
        f"  {detail}, or export with {option_name('via')} torch."
    )


def _learn(builder: GraphBuilder, value: Value, node: fx.Node) -> None:
    """Record a result as the holder of sizes that no input has."""
    first, second = node.meta["info"]
    if isinstance(first, tuple):
        return  # single results are recorded when they are taken
    if isinstance(first, TensorInfo):
        for axis, sizes in enumerate(zip(first.shape, second.shape, strict=True)):
            builder.learn(sizes, value, axis)
    else:
        builder.learn((first, second), value)


def _describe(value: Value, node: fx.Node, symbols: Symbols) -> None:
    """Set the shape and dtype of a traced result on its ONNX value."""
    first, second = node.meta["info"]
    if isinstance(first, TensorInfo) and value.node is not None:
        value.dims = tuple(symbols.name(sizes) for sizes in zip(first.shape, second.shape, strict=True))
        value.dtype = first.dtype
