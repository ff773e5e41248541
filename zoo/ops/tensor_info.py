"""Shape and dtype of a traced tensor, and the common arithmetic of shape rules."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import torch

Shape = tuple[int, ...]


@dataclass(frozen=True)
class TensorInfo:
    """Shape and dtype of a tensor under trace."""

    shape: Shape
    dtype: torch.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def device(self) -> torch.device:
        """Always the meta device."""
        return torch.device("meta")

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.elements * self.dtype.itemsize

    def axis(self, axis: int) -> int:
        """``axis`` counted from the front. Raises IndexError if it is out of range."""
        return from_front(axis, self.ndim)

    def with_shape(self, *shape: int) -> TensorInfo:
        """A tensor of this dtype with another shape."""
        return TensorInfo(shape, self.dtype)


def from_front(axis: int, rank: int) -> int:
    """``axis`` of a tensor of ``rank`` counted from the front. Raises IndexError if it is out of range."""
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} is out of range for a tensor with {rank} axes")
    return axis % rank


def element_count(value: Any) -> int:
    """Number of elements of a tensor or of a tuple of tensors; 0 for sizes."""
    if isinstance(value, tuple):
        return sum(map(element_count, value))
    return value.elements if isinstance(value, TensorInfo) else 0


def byte_count(value: Any) -> int:
    """Bytes of a tensor or of a tuple of tensors; 0 for sizes."""
    if isinstance(value, tuple):
        return sum(map(byte_count, value))
    return value.nbytes if isinstance(value, TensorInfo) else 0


def shapes_of(*values: Any) -> list[Shape]:
    """The shapes of the tensors among some arguments."""
    return [value.shape for value in values if isinstance(value, TensorInfo)]


def broadcast(*shapes: Shape) -> Shape:
    """The common shape. Raises ValueError if the shapes do not broadcast."""
    if len(set(shapes)) == 1:
        return shapes[0]
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            raise ValueError(f"shapes {shapes} do not broadcast")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def promoted(*values: Any) -> torch.dtype:
    """The dtype in which torch computes with one or two values: tensors (as :class:`TensorInfo`), numbers or sizes."""
    kinds = tuple((v.dtype, v.shape != ()) if isinstance(v, TensorInfo) else type(v) for v in values)
    return _promoted(kinds, torch.get_default_dtype())


@functools.cache
def _promoted(kinds: tuple[Any, ...], default: torch.dtype) -> torch.dtype:
    """:func:`promoted` of tensors by dtype, with axes or without, and of numbers by type: with torch's default, all that matters."""
    examples = [
        torch.empty((1,) * kind[1], dtype=kind[0]) if isinstance(kind, tuple) else kind() for kind in kinds
    ]
    return torch.result_type(examples[0], examples[-1])


def floating(dtype: torch.dtype) -> torch.dtype:
    """``dtype`` if it is floating-point, else the default dtype."""
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


def info_on_meta(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call, found by running it on meta tensors."""
    positional, named = on_meta(args), on_meta(kwargs)
    with torch.device("meta"):
        result = (
            getattr(positional[0], target)(*positional[1:], **named)
            if isinstance(target, str)
            else target(*positional, **named)
        )
    return infos(result)


def on_meta(value: Any) -> Any:
    """``value`` with a meta tensor for every :class:`TensorInfo` in it."""
    if isinstance(value, TensorInfo):
        return torch.empty(value.shape, dtype=value.dtype, device="meta")
    if isinstance(value, dict):
        return {key: on_meta(item) for key, item in value.items()}
    return type(value)(map(on_meta, value)) if isinstance(value, (tuple, list)) else value


def infos(value: Any) -> Any:
    """``value`` with a :class:`TensorInfo` for every tensor in it; lists become tuples."""
    if isinstance(value, torch.Tensor):
        return TensorInfo(tuple(value.shape), value.dtype)
    if isinstance(value, dict):
        return {key: infos(item) for key, item in value.items()}
    return tuple(map(infos, value)) if isinstance(value, (tuple, list)) else value
