"""Building an ONNX graph without duplicates.

Two operations with equal inputs and attributes are one: a mask, a table of angles or a shape that every layer
requests appears once, named after the first module that requested it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import torch

from exporters.graph.content import Content, StoredContent
from exporters.graph.opset import opset_of
from exporters.graph.quantization.scheme import Quantization
from exporters.graph.values import Body, Graph, Node, Parameter, Value, matching_precision
from exporters.target.targets import HALF, Target
from zoo.tracing.symbols import Placeholder, SizePair, Symbols, summands

Dim = int | SizePair
"""A static size, or the pair of a symbolic one; -1 is the remaining size of a reshape."""

NUMPY = {
    torch.float32: np.float32,
    torch.float16: np.float16,
    torch.bfloat16: ml_dtypes.bfloat16,
    torch.float64: np.float64,
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.bool: np.bool_,
    torch.int8: np.int8,
    torch.uint8: np.uint8,
}


def adapter_input(weight: str, part: str) -> str:
    """The input of a graph for a matrix of a weight's adapter, ``down`` or ``up``."""
    return f"{weight.removesuffix('.weight')}.lora_{part}"


class GraphBuilder:
    """Collects the inputs, operations and weights of one graph.

    ``path`` is the module whose operations are being written; it becomes part of their names. ``buffers`` are inputs
    with spare room, whose sizes are larger than their contents. ``adapted`` are the weights whose products an adapter may change.
    ``reads_weights`` becomes true when an emitter asks for a tensor of the data file or for the quantization.
    """

    def __init__(
        self,
        target: Target,
        symbols: Symbols,
        inputs: Sequence[Placeholder],
        buffers: frozenset[str] = frozenset(),
        quantization: Quantization | None = None,
        adapted: frozenset[str] = frozenset(),
    ) -> None:
        self.target, self.symbols, self._quantization = target, symbols, quantization
        self.adapted = adapted
        self.reads_weights = False
        self._adapters: dict[str, Value] = {}
        self.path = ""
        self._sized: dict[int | str, tuple[str, int]] = {}  # the first input and axis with each dim
        for placeholder in inputs:
            for axis, dim in enumerate(placeholder.dims if placeholder.name not in buffers else ()):
                self._sized.setdefault(dim, (placeholder.name, axis))
        self._remainders = _remainders(self._sized)
        self.inputs = {placeholder.name: self._input(placeholder) for placeholder in inputs}
        self._nodes: list[Node] = []
        self._known: dict[Any, Any] = {}
        self._weights: dict[str, tuple[Value, Parameter]] = {}
        self._constants: dict[Value, np.ndarray[Any, Any]] = {}
        self._unrounded: dict[Value, np.ndarray[Any, Any]] = {}
        self._names: dict[str, int] = {}
        self._shared: dict[str, list[Hashable]] = {}
        self._uses = Counter[str]()
        self._reshaped: dict[Value, Value] = {}
        self._holders: dict[SizePair, tuple[Value, int | None]] = {}

    @property
    def quantization(self) -> Quantization | None:
        """The quantization of the graph's weights; None in floats."""
        self.reads_weights = True
        return self._quantization

    def requantized(self, quantization: Quantization | None) -> GraphBuilder:
        """A builder for the calls of this one's graph that read weights, with all that it knows apart from weights."""
        other = copy(self)
        other._quantization = quantization
        other._nodes, other._weights, other._uses, other._shared, other._holders = [], {}, Counter(), {}, {}
        other._known, other._names, other._reshaped = (
            dict(self._known),
            dict(self._names),
            dict(self._reshaped),
        )
        other._constants, other._unrounded = dict(self._constants), dict(self._unrounded)
        return other

    @staticmethod
    def _input(placeholder: Placeholder) -> Value:
        return Value(placeholder.name, None, placeholder.dtype, placeholder.dims)

    # ------------------------------------------------------------------------------------------- operations

    def op(
        self,
        name: str,
        *inputs: Value | None,
        outputs: int = 1,
        omitted: Sequence[int] = (),
        domain: str = "",
        label: str = "",
        **attributes: Any,
    ) -> Any:
        """The result of an operation (or a tuple of ``outputs`` results); an existing equal operation is reused.

        ``omitted`` are the indices of optional results that are not used; trailing None inputs are not written.
        ``label`` replaces the operation's own name in the name of the node.
        """
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        key = (
            domain,
            name,
            tuple(map(id, inputs)),
            outputs,
            tuple(sorted((k, repr(v)) for k, v in attributes.items())),
        )
        if key not in self._known:
            label = self._unique(f"{self.path}/{label or name}" if self.path else label or name)
            node = Node(name, domain, inputs, [], attributes, label)
            node.outputs = [Value(label if outputs == 1 else f"{label}:{i}", node) for i in range(outputs)]
            for index in omitted:
                node.outputs[index].name = ""
            self._nodes.append(node)
            self._known[key] = node.outputs[0] if outputs == 1 else tuple(node.outputs)
        return self._known[key]

    @contextmanager
    def body(self, name: str, *inputs: tuple[str, torch.dtype | None]) -> Iterator[Body]:
        """Write operations into a graph inside another operation, with inputs of these names and dtypes.

        Append its results to ``outputs``. Values computed inside are unknown outside.
        """
        values = [Value(self._unique(f"{self.path}/{name}/{label}"), None, dtype) for label, dtype in inputs]
        body = Body(self._unique(f"{self.path}/{name}"), values)
        outer_nodes, outer_known = self._nodes, self._known
        self._nodes, self._known = body.nodes, dict(outer_known)
        try:
            yield body
        finally:
            self._nodes, self._known = outer_nodes, outer_known

    def _unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}_{count}" if count else name

    def constant(self, values: Any, dtype: torch.dtype, owner: str = "") -> Value:
        """A small constant tensor: a scalar, or nested lists. Equal constants are shared, unless each has an ``owner``."""
        array: np.ndarray[Any, Any] = np.asarray(values, dtype=NUMPY[dtype])
        exact: np.ndarray[Any, Any] = np.asarray(values, dtype=np.float64) if dtype in HALF else array
        key = ("constant", exact.tobytes(), array.shape, dtype, owner)
        if key not in self._known:
            text = str(array.item()) if array.ndim == 0 else "x".join(map(str, array.shape))
            value = Value(self._unique(f"constant/{text}"), None, dtype, array.shape)
            self._constants[value] = array
            if dtype in HALF:
                self._unrounded[value] = exact
            self._known[key] = value
        return self._known[key]

    def ints(self, *values: int) -> Value:
        """A vector of int64."""
        return self.constant(list(values), torch.int64)

    def parameter(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        content: Content | None = None,
        part: int = 0,
    ) -> Value:
        """A tensor of the data file; without ``content``, the model's weight of this name."""
        self.reads_weights = True
        if name not in self._weights:
            declared = Parameter(name, shape, dtype, content or StoredContent((name,), dtype), part)
            self._weights[name] = (Value(name, None, dtype, shape), declared)
        return self._weights[name][0]

    def adapter(self, weight: str, part: str, dims: tuple[int | str, ...], dtype: torch.dtype) -> Value:
        """A matrix of the adapter of a weight, ``down`` or ``up``; its default has rank 0."""
        name = adapter_input(weight, part)
        return self._adapters.setdefault(name, Value(name, None, dtype, dims))

    def alias_per_use(self, value: Value) -> Value:
        """A tensor of the data file under a new alias for each use after the first; all aliases share its bytes.

        On processors whose sums would saturate, ONNX Runtime repacks the int8 weight of each integer product by name, and
        rejects a second repack of the same name. From 1.28 on, it fuses DequantizeLinear and MatMul only if nothing else reads
        the codes and scales.
        """
        if value.name not in self._weights:  # such as scales that are cast
            return value
        uses = self._uses[value.name]
        self._uses[value.name] += 1
        if not uses:
            return value
        first = self._weights[value.name][1]
        return self.parameter(f"{value.name}_{uses}", first.shape, first.dtype, first.content, first.part)

    def shared_name(self, label: str, key: Hashable) -> str:
        """A name for a tensor that several modules share, the same for equal keys."""
        keys = self._shared.setdefault(label, [])
        if key not in keys:
            keys.append(key)
        index = keys.index(key)
        return f"{label}_{index}" if index else label

    def joined(self, name: str, parts: Sequence[Value]) -> Value:
        """Weights of the model stacked along the first axis, as one tensor of the data file."""
        declared = [self._weights[part.name][1] for part in parts]
        names = tuple(leaf for part in declared for leaf in part.content.names)
        rows, dtype = sum(part.shape[0] for part in declared), declared[0].dtype
        return self.parameter(name, (rows, *declared[0].shape[1:]), dtype, StoredContent(names, dtype))

    def declared(self, value: Value) -> Parameter | None:
        """The declaration of a weight of the model; None for a computed value."""
        _, parameter = self._weights.get(value.name, (None, None))
        if parameter is None:
            return None
        self.reads_weights = True
        return parameter if isinstance(parameter.content, StoredContent) else None

    def converted(self, weight: Parameter, dtype: torch.dtype) -> Value:
        """A weight of the model in another dtype, as a tensor of the data file."""
        name = f"{weight.name}.{str(dtype).removeprefix('torch.')}"
        return self.parameter(name, weight.shape, dtype, StoredContent(weight.content.names, dtype))

    # ------------------------------------------------------------------------------------------------- sizes

    def size(self, sizes: SizePair, value: Value | None = None, axis: int = 0) -> Value:
        """A size as a vector of one int64; ``value`` has it on ``axis``, if no other tensor has it.

        Raises NotImplementedError if no tensor has it.
        """
        name = self.symbols.name(sizes)
        if isinstance(name, int):
            return self.ints(name)
        if name is not None and name not in self.symbols.computed:
            known = self._size_of_input(name)
            if known is not None:
                return known
            if len(symbols := summands(name)) == 2:
                return self.op("Add", *(self.size(self.symbols.values[symbol]) for symbol in symbols))
        holder = self._holders.get(sizes, None if value is None else (value, axis))
        if holder is None:
            raise NotImplementedError(
                "No tensor in the graph has the size of its result: add an input that has it"
            )
        tensor, held = holder
        return tensor if held is None else self.op("Shape", tensor, start=held, end=held + 1)

    def number(self, size: Value) -> Value:
        """A size, a vector of one int64, as a scalar for arithmetic with tensors."""
        if not self.target.sizes_on_device:
            return self.op("Squeeze", size)
        ones = self.op(
            "ConstantOfShape", size, value=onnx.helper.make_tensor("one", onnx.TensorProto.INT64, [1], [1])
        )
        return self.op("ReduceSum", ones, keepdims=0)

    def _size_of_input(self, name: str) -> Value | None:
        """A size that an input has, or an input's sum of two symbols minus the other symbol; otherwise None."""
        if name in self._sized:
            source, axis = self._sized[name]
            result: Value = self.op("Shape", self.inputs[source], start=axis, end=axis + 1)
            return result
        if name not in self._remainders:
            return None
        total, other = self._remainders[name]
        rest: Value = self.op("Sub", self._size_of_input(total), self.size(self.symbols.values[other]))
        return rest

    @contextmanager
    def own_sizes(self) -> Iterator[None]:
        """Forget what is learned inside."""
        outer, self._holders = self._holders, dict(self._holders)
        try:
            yield
        finally:
            self._holders = outer

    def learn(self, sizes: SizePair, value: Value, axis: int | None = None) -> None:
        """Record a tensor with a size on ``axis``, or a value that is that size; the first one is kept."""
        self._holders.setdefault(sizes, (value, axis))

    def knows(self, sizes: Dim) -> bool:
        """Whether a size can be computed."""
        return isinstance(sizes, int) or sizes in self._holders or not self._is_nameless(sizes)

    def _is_nameless(self, sizes: Dim) -> bool:
        return not isinstance(sizes, int) and self.symbols.name(sizes) in {None, *self.symbols.computed}

    def reshape(self, x: Value, dims: Sequence[Dim], *, again: bool = False) -> Value:
        """``x`` reshaped to ``dims``; a reshape of a reshape starts from the original, unless it is wanted ``again``, and
        an identity reshape is omitted.

        An unnamed size may be 0, which needs ``allowzero``: a shape otherwise copies the size of ``x`` there.
        """
        x = x if again else self.unshaped(x)
        wanted = tuple(dim if isinstance(dim, int) else self.symbols.name(dim) for dim in dims)
        if x.dims == wanted and not {None, -1} & set(wanted):
            return x
        static = [dim if isinstance(dim, int) else (dim[0] if dim[0] == dim[1] else None) for dim in dims]
        symbolic = [axis for axis, size in enumerate(static) if size is None]
        free = [axis for axis in symbolic if not self.knows(dims[axis])] or symbolic
        if len(free) == 1 and -1 not in static:
            static[free[0]] = -1
        attributes: dict[str, Any] = {}
        if None in static:
            if -1 not in static and any(self._is_nameless(dim) for dim in dims):
                attributes["allowzero"] = 1
            parts = [
                self.ints(size) if size is not None else self.size(dim)  # type: ignore[arg-type]
                for size, dim in zip(static, dims, strict=True)
            ]
            shape = self.op("Concat", *parts, axis=0)
        else:
            shape = self.ints(*static)  # type: ignore[arg-type]
        result: Value = self.op("Reshape", x, shape, **attributes)
        self._reshaped[result] = x
        return result

    def unshaped(self, value: Value) -> Value:
        """The value that a reshape starts from; any other value is its own."""
        return self._reshaped.get(value, value)

    # ------------------------------------------------------------------------------------------------ result

    def graph(self, name: str, outputs: Mapping[str, Value]) -> Graph:
        """The graph of everything that the outputs depend on."""
        self.path = ""
        results: list[Value] = []
        for label, value in outputs.items():
            while value.node is None or value in results:  # each output needs a distinct name
                same = self.op("Identity", value)
                same.dtype, same.dims = value.dtype, value.dims
                value = same
            value.name = label
            results.append(value)
        nodes, live = self.needed(results)
        return Graph(
            name=name,
            opset=opset_of(nodes, self.target),
            domains=frozenset(inner.domain for node in nodes for inner in node.within) - {""},
            inputs=list(self.inputs.values()),
            outputs=results,
            nodes=nodes,
            parameters=self.parameters(live),
            constants={value.name: array for value, array in self._constants.items() if value in live},
            unrounded={value.name: array for value, array in self._unrounded.items() if value in live},
            adapters=[value for value in self._adapters.values() if value in live],
        )

    def needed(self, results: Iterable[Value]) -> tuple[list[Node], set[Value]]:
        """The operations that some values depend on, and the values that these read, with the values themselves."""
        live, nodes = set(results), []
        for node in reversed(self._nodes):
            if any(output in live for output in node.outputs):
                nodes.append(node)
                live.update(value for inner in node.within for value in inner.inputs if value is not None)
        return nodes[::-1], live

    def parameters(self, live: Container[Value]) -> dict[str, Parameter]:
        """The declared tensors of the data file that are among some values, by name."""
        return matching_precision(
            {label: declared for label, (value, declared) in self._weights.items() if value in live}
        )


def _remainders(sizes: Iterable[int | str]) -> dict[str, tuple[str, str]]:
    """The first sum of two symbols that has each symbol, and the other symbol of that sum."""
    remainders: dict[str, tuple[str, str]] = {}
    for size in sizes:
        if isinstance(size, str) and len(symbols := summands(size)) == 2:
            for symbol, other in zip(symbols, symbols[::-1], strict=True):
                remainders.setdefault(symbol, (size, other))
    return remainders
