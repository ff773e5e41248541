"""Operations that make tensors from sizes and numbers, and sizes from tensors."""

from __future__ import annotations

from typing import Any

import torch

from zoo import functional
from zoo.functional.numbered import TOKENS_PER_LABEL
from zoo.ops.flops import no_flops
from zoo.ops.operation import register_operation
from zoo.ops.saved import saves_nothing
from zoo.ops.tensor_info import TensorInfo
from zoo.ops.tokens import mixed


def size(tensor: Any, axis: int) -> int:
    """One size of a tensor: the form of ``tensor.shape[axis]`` in a traced graph."""
    return int(tensor.shape[axis])


def _positions_from(start: int, length: int, like: TensorInfo) -> TensorInfo:
    return TensorInfo((length,), torch.int64)


def _constant(values: tuple[float, ...], like: TensorInfo) -> TensorInfo:
    return TensorInfo((len(values),), torch.int64 if isinstance(values[0], int) else torch.float32)


def _most_numbered(numbers: TensorInfo) -> int:
    """A number that stands for one that depends on values."""
    return numbers.shape[1] // TOKENS_PER_LABEL


NONE = {"flops": no_flops, "saved": saves_nothing, "mixing": mixed}

register_operation(size, shape=size, **NONE)
register_operation(functional.positions_from, shape=_positions_from, device_only=True, **NONE)
register_operation(functional.constant, shape=_constant, device_only=True, **NONE)
register_operation(functional.most_numbered, shape=_most_numbered, **NONE)
