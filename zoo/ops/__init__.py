"""One entry per functional operation: shape, FLOPs, tensors saved by autograd, mixing of tokens.

There is one file per kind of operation. A plugin adds its own with :func:`register_operation`.
"""

from zoo.ops import (
    arithmetic,
    attention,
    channel_recurrence,
    creation,
    elementwise,
    experts,
    indexing,
    lstm,
    matrix_recurrence,
    products,
    recurrences,
    reductions,
    shaping,
)
from zoo.ops.operation import (
    Operation,
    operation_of,
    operations,
    register_operation,
    result_info,
    target_name,
)
from zoo.ops.tensor_info import TensorInfo

__all__ = [
    "Operation",
    "TensorInfo",
    "arithmetic",
    "attention",
    "channel_recurrence",
    "creation",
    "elementwise",
    "experts",
    "indexing",
    "lstm",
    "matrix_recurrence",
    "operation_of",
    "operations",
    "products",
    "recurrences",
    "reductions",
    "register_operation",
    "result_info",
    "shaping",
    "target_name",
]
