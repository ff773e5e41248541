"""Which emitter writes which function, and what an emitter is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from exporters.graph import Dim, GraphBuilder, Value
from exporters.proto import DTYPES
from zoo.tracing.facts import Facts, promoted
from zoo.tracing.symbols import Sizes

Emitter = Callable[..., Any]
_emitters: dict[Any, Emitter] = {}


def emits(*targets: Any) -> Callable[[Emitter], Emitter]:
    """Decorator: the emitter of these functions and method names.

    It is called with a :class:`Call` and the function's own arguments, in which tensors and sizes are
    :class:`Operand`, and returns the ONNX value of the result.  It raises NotImplementedError with a reason for
    arguments that it does not write.
    """

    def add(emitter: Emitter) -> Emitter:
        _emitters.update(dict.fromkeys(targets, emitter))
        return emitter

    return add


def emitter_of(target: Any) -> Emitter | None:
    """The emitter of a traced function or method name, or None."""
    return _emitters.get(target)


@dataclass(frozen=True)
class Operand:
    """An argument under emission: its ONNX value, and its facts in the two runs (sizes are plain numbers there)."""

    value: Value
    facts: tuple[Any, Any]

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor, not a size."""
        return isinstance(self.facts[0], Facts)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of a tensor."""
        dtype: torch.dtype = self.facts[0].dtype
        return dtype

    @property
    def ndim(self) -> int:
        """The rank of a tensor."""
        return len(self.facts[0].shape)

    @property
    def dims(self) -> list[Sizes]:
        """The sizes of a tensor."""
        return list(zip(self.facts[0].shape, self.facts[1].shape, strict=True))

    def static(self, axis: int) -> int:
        """A size that is the same for every input.  Raises NotImplementedError where it is not."""
        first, second = self.dims[axis]
        if first != second:
            raise NotImplementedError(f"axis {axis} has to be of the same size for every input")
        return first


@dataclass(frozen=True)
class Call:
    """The call being written: the graph, and the facts of the result."""

    graph: GraphBuilder
    node: fx.Node

    @property
    def result(self) -> Operand:
        """The result, without a value yet."""
        return Operand(None, self.node.meta["facts"])  # type: ignore[arg-type]

    def promoted(self, a: Any, b: Any) -> torch.dtype:
        """The dtype in which torch works on two operands or numbers."""
        return promoted(
            *(operand.facts[0] if isinstance(operand, Operand) else operand for operand in (a, b))
        )

    def op(self, name: str, *inputs: Value | None, **attributes: Any) -> Any:
        """An operation of the graph."""
        return self.graph.op(name, *inputs, **attributes)

    def value(self, operand: Any, dtype: torch.dtype) -> Value:
        """A tensor's value in a dtype, or a number as a constant of that dtype."""
        if not isinstance(operand, Operand):
            return self.graph.constant(operand, dtype)
        if not operand.is_tensor:  # a size in arithmetic with a tensor
            return self.cast(self.op("Squeeze", operand.value), torch.int64, dtype)
        return self.cast(operand.value, operand.dtype, dtype)

    def cast(self, value: Value, dtype: torch.dtype, wanted: torch.dtype) -> Value:
        """A value in another dtype; a weight is stored in it."""
        if dtype == wanted:
            return value
        weight = self.graph.declared(value)
        if weight is not None and len(weight.shape) < 2:  # matrices are read as they are by more than one
            return self.graph.converted(weight, wanted)
        return self.op("Cast", value, to=int(DTYPES[wanted]))

    def size(self, size: Any) -> Value:
        """A size, a number or an operand, as a vector of one int64."""
        value = size.value if isinstance(size, Operand) else size
        return value if isinstance(value, Value) else self.graph.ints(int(value))

    def dim(self, size: Any) -> Dim:
        """A size for ``reshape``."""
        return tuple(size.facts) if isinstance(size, Operand) else int(size)
