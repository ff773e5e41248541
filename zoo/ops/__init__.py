"""One entry per functional operation: shape, FLOPs, tensors saved by autograd, mixing of tokens.

There is one file per kind of operation, and all files of this folder are imported. A plugin adds its own with
:func:`register_operation`.
"""

import pkgutil
from importlib import import_module

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
    "operation_of",
    "operations",
    "register_operation",
    "result_info",
    "target_name",
]

for _file in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
