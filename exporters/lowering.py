"""From a traced graph to an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import fx, nn

from exporters.emitters import Call, emitter_of
from exporters.emitters.registry import Operand
from exporters.fusing.functions import group_query_attention
from exporters.graph import Graph, GraphBuilder, Value
from exporters.quantization.scheme import Quantization
from exporters.targets import Target
from specs.errors import UserError, option_name
from zoo.tracing.facts import Facts
from zoo.tracing.symbols import Placeholder, Symbols


class NoEmitterError(UserError):
    """A model calls a function that has no ONNX emitter; names the module and the function."""


def lower(
    traced: fx.Graph,
    name: str,
    model: nn.Module,
    target: Target,
    symbols: Symbols,
    inputs: Sequence[Placeholder],
    quantization: Quantization | None = None,
) -> Graph:
    """The ONNX graph of a trace.  Its weights are declared, and have no values.

    Raises :class:`NoEmitterError`.
    """
    in_place = [node.args[1:3] for node in traced.nodes if node.target is group_query_attention]
    buffers = frozenset(str(past.target) for pair in in_place for past in pair)
    builder = GraphBuilder(target, symbols, inputs, buffers, quantization)
    values: dict[fx.Node, Value] = {}
    outputs: dict[str, Value] = {}

    def of_node(node: fx.Node) -> Any:
        return Operand(values[node], node.meta["facts"])

    def operand(argument: Any) -> Any:
        return fx.map_arg(argument, of_node)

    for node in traced.nodes:
        builder.path = node.meta.get("path", "")
        match node.op:
            case "placeholder":
                values[node] = builder.inputs[str(node.target)]
            case "get_attr":
                facts = node.meta["facts"][0]
                values[node] = builder.parameter(str(node.target), facts.shape, facts.dtype)
            case "output":
                for label, result in node.args[0].items():
                    outputs[label] = values[result]
                    _describe(values[result], result, symbols)
            case _:
                emitter = emitter_of(node.target)
                if emitter is None:
                    raise _refusal(
                        builder.path, node, "no ONNX emitter", "write one with exporters.emitters.emits"
                    )
                try:
                    values[node] = emitter(Call(builder, node), *operand(node.args), **operand(node.kwargs))
                except (NotImplementedError, TypeError) as error:
                    inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
                    if isinstance(error, TypeError) and inside:
                        raise  # a mistake of the emitter's, not arguments that it does not have
                    raise _refusal(
                        builder.path, node, "no ONNX emitter for such arguments", str(error)
                    ) from error
                _describe(values[node], node, symbols)
                _learn(builder, values[node], node)
    return builder.graph(name, outputs)


def _refusal(path: str, node: fx.Node, reason: str, detail: str) -> NoEmitterError:
    function = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", node.target)
    return NoEmitterError(
        f"{path or 'the model'} calls {function}, which has {reason}\n  {detail}, or export it through torch.onnx ({option_name('via')} torch)"
    )


def _learn(builder: GraphBuilder, value: Value, node: fx.Node) -> None:
    """Tell the graph where it finds the sizes that no input has."""
    first, second = node.meta["facts"]
    if isinstance(first, tuple):
        return  # each result is told of where it is taken
    if isinstance(first, Facts):
        for axis, sizes in enumerate(zip(first.shape, second.shape, strict=True)):
            builder.learn(sizes, value, axis)
    else:
        builder.learn((first, second), value)


def _describe(value: Value, node: fx.Node, symbols: Symbols) -> None:
    """Write the shape and dtype of a traced result on its ONNX value."""
    first, second = node.meta["facts"]
    if isinstance(first, Facts) and value.node is not None:
        value.dims = tuple(symbols.name(sizes) for sizes in zip(first.shape, second.shape, strict=True))
        value.dtype = first.dtype
