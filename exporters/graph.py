"""Building an ONNX graph in which nothing is written twice.

Two operations with equal inputs and attributes are one: a mask, a table of angles or a shape that every layer
asks for appears once, named after the first module that asked.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import torch

from exporters.content import Content, Stored
from exporters.quantization.scheme import Quantization
from exporters.targets import BASE_OPSET, BFLOAT16_SINCE, HALF, OPERATIONS, Padding, Target
from zoo.tracing.symbols import SUM, Placeholder, Sizes, Symbols

Dim = int | Sizes
"""A static size, or the pair of a symbolic one; -1 stands for whatever is left."""

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


STATED_ROUNDING = "StatedRounding"
"""The label of operations that round as the architecture says, whatever the precision."""


@dataclass(eq=False, slots=True)
class Value:
    """A tensor in a graph: its name, what computes it (nothing for an input or a weight), and what is known of it."""

    name: str
    node: Node | None = None
    dtype: torch.dtype | None = None
    dims: tuple[int | str | None, ...] | None = None


@dataclass(eq=False, slots=True)
class Node:
    """An operation in a graph; an input that is left out is None."""

    op: str
    domain: str
    inputs: tuple[Value | None, ...]
    outputs: list[Value]
    attributes: dict[str, Any]
    name: str


@dataclass(frozen=True)
class Parameter:
    """A tensor of the data file that the graph uses: where it lies there is decided when the file is laid out."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    content: Content
    part: int = 0


@dataclass(frozen=True)
class Graph:
    """A finished graph.  Its weights are declared; where they lie is decided when it is written.

    ``places`` is the length of its caches, where they do not grow; ``unrounded`` are the float64 values of constants
    that are stored in half.
    """

    name: str
    opset: int
    domains: frozenset[str]
    inputs: list[Value]
    outputs: list[Value]
    nodes: list[Node]
    parameters: dict[str, Parameter]
    constants: dict[str, np.ndarray[Any, Any]]
    places: int | None = None
    unfused: list[str] = field(default_factory=list)
    unrounded: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    @property
    def padding(self) -> Padding:
        """The side on which its rows take padding."""
        counted = any(node.op == "GroupQueryAttention" for node in self.nodes)
        return "right" if counted or self.places else "either"


class GraphBuilder:
    """Collects the inputs, operations and weights of one graph.

    ``path`` is the module whose operations are being written; it becomes part of their names.  ``buffers`` are inputs
    with room to spare, whose sizes are not those of what is in them.
    """

    def __init__(
        self,
        target: Target,
        symbols: Symbols,
        inputs: Sequence[Placeholder],
        buffers: frozenset[str] = frozenset(),
        quantization: Quantization | None = None,
    ) -> None:
        self.target, self.symbols, self.quantization = target, symbols, quantization
        self.path = ""
        self._sized: dict[int | str, tuple[str, int]] = {}  # the input and axis that have a dim first
        for given in inputs:
            for axis, dim in enumerate(given.dims if given.name not in buffers else ()):
                self._sized.setdefault(dim, (given.name, axis))
        self.inputs = {given.name: self._input(given) for given in inputs}
        self._nodes: list[Node] = []
        self._known: dict[Any, Any] = {}
        self._weights: dict[str, tuple[Value, Parameter]] = {}
        self._constants: dict[Value, np.ndarray[Any, Any]] = {}
        self._unrounded: dict[Value, np.ndarray[Any, Any]] = {}
        self._names: dict[str, int] = {}
        self._shared: dict[str, list[Hashable]] = {}
        self._reshaped: dict[Value, Value] = {}
        self._places: dict[Sizes, tuple[Value, int | None]] = {}

    @staticmethod
    def _input(given: Placeholder) -> Value:
        return Value(given.name, None, given.dtype, given.dims)

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
        """The result of an operation (or a tuple of ``outputs`` results), written unless it is there already.

        ``omitted`` are the places of optional results that nothing wants; inputs that are left out at the end are not
        written.  ``label`` names it in the place of what it is.
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
            for place in omitted:
                node.outputs[place].name = ""
            self._nodes.append(node)
            self._known[key] = node.outputs[0] if outputs == 1 else tuple(node.outputs)
        return self._known[key]

    def _unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}_{count}" if count else name

    def constant(self, values: Any, dtype: torch.dtype) -> Value:
        """A small fixed tensor: a scalar, or nested lists."""
        array: np.ndarray[Any, Any] = np.asarray(values, dtype=NUMPY[dtype])
        exact: np.ndarray[Any, Any] = np.asarray(values, dtype=np.float64) if dtype in HALF else array
        key = ("constant", exact.tobytes(), array.shape, dtype)
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
        """A tensor of the data file; without other content the weight of the model that has this name."""
        if name not in self._weights:
            declared = Parameter(name, shape, dtype, content or Stored((name,), dtype), part)
            self._weights[name] = (Value(name, None, dtype, shape), declared)
        return self._weights[name][0]

    def shared_name(self, label: str, key: Hashable) -> str:
        """A name for what several modules share, the same for equal keys."""
        keys = self._shared.setdefault(label, [])
        if key not in keys:
            keys.append(key)
        place = keys.index(key)
        return f"{label}_{place}" if place else label

    def joined(self, name: str, parts: Sequence[Value]) -> Value:
        """Weights of the model one below the other, as one tensor of the data file."""
        declared = [self._weights[part.name][1] for part in parts]
        names = tuple(leaf for part in declared for leaf in part.content.names)
        rows, dtype = sum(part.shape[0] for part in declared), declared[0].dtype
        return self.parameter(name, (rows, *declared[0].shape[1:]), dtype, Stored(names, dtype))

    def declared(self, value: Value) -> Parameter | None:
        """What is known of a weight of the model; None for what is computed."""
        _, parameter = self._weights.get(value.name, (None, None))
        return parameter if parameter is not None and isinstance(parameter.content, Stored) else None

    def converted(self, weight: Parameter, dtype: torch.dtype) -> Value:
        """A weight of the model in another dtype, as a tensor of the data file."""
        name = f"{weight.name}.{str(dtype).removeprefix('torch.')}"
        return self.parameter(name, weight.shape, dtype, Stored(weight.content.names, dtype))

    # ------------------------------------------------------------------------------------------------- sizes

    def size(self, sizes: Sizes, value: Value | None = None, axis: int = 0) -> Value:
        """A size as a vector of one int64; ``value`` has it on ``axis``, should nothing else have it.

        Raises NotImplementedError where nothing has it.
        """
        name = self.symbols.name(sizes)
        if isinstance(name, int):
            return self.ints(name)
        if name is not None:
            known = self._size_of_input(name)
            if known is not None:
                return known
            if SUM in name:
                first, second = (self.size(self.symbols.values[part]) for part in name.split(SUM))
                return self.op("Add", first, second)
        place = self._places.get(sizes, None if value is None else (value, axis))
        if place is None:
            raise NotImplementedError("nothing in the graph has the size of its result")
        holder, held = place
        return holder if held is None else self.op("Shape", holder, start=held, end=held + 1)

    def _size_of_input(self, name: str) -> Value | None:
        """A size that an input has, or what is left of one that is the sum of it and another."""
        if name in self._sized:
            given, axis = self._sized[name]
            result: Value = self.op("Shape", self.inputs[given], start=axis, end=axis + 1)
            return result
        for dim in self._sized:
            parts = str(dim).split(SUM)
            if len(parts) == 2 and name in parts:
                whole, rest = self._size_of_input(str(dim)), parts[1 - parts.index(name)]
                left: Value = self.op("Sub", whole, self.size(self.symbols.values[rest]))
                return left
        return None

    def learn(self, sizes: Sizes, value: Value, axis: int | None = None) -> None:
        """Remember a value that has a size on an axis, or is that size; the first is kept."""
        self._places.setdefault(sizes, (value, axis))

    def _knows(self, sizes: Dim) -> bool:
        return isinstance(sizes, int) or sizes in self._places or self.symbols.name(sizes) is not None

    def _is_nameless(self, sizes: Dim) -> bool:
        return not isinstance(sizes, int) and self.symbols.name(sizes) is None

    def reshape(self, x: Value, dims: Sequence[Dim]) -> Value:
        """``x`` with other dims; a reshape of a reshape goes back to the first, and one to the dims it has is none.

        A size without a name may be 0, which a shape would take for that of ``x`` unless told otherwise.
        """
        x = self._reshaped.get(x, x)
        wanted = tuple(dim if isinstance(dim, int) else self.symbols.name(dim) for dim in dims)
        if x.dims == wanted and not {None, -1} & set(wanted):
            return x
        static = [dim if isinstance(dim, int) else (dim[0] if dim[0] == dim[1] else None) for dim in dims]
        symbolic = [place for place, size in enumerate(static) if size is None]
        free = [place for place in symbolic if not self._knows(dims[place])] or symbolic
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

    # ------------------------------------------------------------------------------------------------ result

    def graph(self, name: str, outputs: Mapping[str, Value]) -> Graph:
        """The graph of everything that the outputs need."""
        self.path = ""
        results: list[Value] = []
        for label, value in outputs.items():
            while value.node is None or value in results:  # an output needs a name of its own
                same = self.op("Identity", value)
                same.dtype, same.dims = value.dtype, value.dims
                value = same
            value.name = label
            results.append(value)
        live = set(results)
        nodes = []
        for node in reversed(self._nodes):
            if any(output in live for output in node.outputs):
                nodes.append(node)
                live.update(value for value in node.inputs if value is not None)
        return Graph(
            name=name,
            opset=max([BASE_OPSET, *(_since(node) for node in nodes)]),
            domains=frozenset(node.domain for node in nodes) - {""},
            inputs=list(self.inputs.values()),
            outputs=results,
            nodes=nodes[::-1],
            parameters={
                label: declared for label, (value, declared) in self._weights.items() if value in live
            },
            constants={value.name: array for value, array in self._constants.items() if value in live},
            unrounded={value.name: array for value, array in self._unrounded.items() if value in live},
        )


def _since(node: Node) -> int:
    """The first opset in which an operation is valid as it is written."""
    in_bfloat16 = any(
        value is not None and value.dtype == torch.bfloat16 for value in (*node.inputs, *node.outputs)
    )
    since = BFLOAT16_SINCE.get(node.op, 0) if in_bfloat16 else 0
    operation = OPERATIONS.get(node.op)
    return since if operation is None or operation.domain else max(since, operation.since)
