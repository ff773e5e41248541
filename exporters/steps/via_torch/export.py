"""The fallback for components that cannot be traced: PyTorch's own exporter for the whole model.

It is slower, holds the model in memory, and decomposes what the tracer keeps whole; the files are verified all the
same.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from onnxscript import FLOAT, INT64, opset18, script
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from specs.base.errors import UserError, option_name
from zoo import functional
from zoo.functional.expert_products import expert_product
from zoo.tracing.symbols import summands
from zoo.tracing.task import Task

OPSET = 20

op: Any = opset18


@script()
def _each_expert(rows: FLOAT, weight: FLOAT, chosen: INT64) -> FLOAT:
    """Each row times the matrix of its expert: R D, E N D, R -> R N."""
    zero = op.CastLike(op.Constant(value_float=0.0), rows)
    result = op.Expand(zero, op.Concat(op.Shape(chosen), op.Shape(weight, start=1, end=2), axis=0))
    for expert in range(op.Squeeze(op.Shape(weight, start=0, end=1))):
        places = op.Transpose(op.NonZero(op.Equal(chosen, expert)), perm=[1, 0])  # rows of one expert, 1
        matrix = op.Transpose(op.Gather(weight, expert, axis=0), perm=[1, 0])
        result = op.ScatterND(result, places, op.MatMul(op.GatherND(rows, places), matrix))
    return result


def _expert_product(x: Any, weight: Any, bias: Any, experts: Any) -> Any:
    """... K D or ... 1 D, E N D, E N, ... K -> ... K N, in a loop over the experts."""
    width = op.Shape(weight, start=2)
    rows_of_experts = op.Expand(x, op.Concat(op.Shape(experts), width, axis=0))  # ... K D
    rows = op.Reshape(rows_of_experts, op.Concat(op.Constant(value_ints=[-1]), width, axis=0))
    chosen = op.Reshape(experts, op.Constant(value_ints=[-1]))
    products = _each_expert(rows, weight, chosen)
    shape = op.Concat(op.Shape(experts), op.Shape(weight, start=1, end=2), axis=0)
    result = op.Reshape(products, shape, allowzero=1)
    return result if bias is None else op.Add(result, op.Gather(bias, experts, axis=0))


TRANSLATIONS: dict[Callable[..., Any], Callable[..., Any]] = {expert_product.default: _expert_product}
"""Functions of onnxscript by operation, as ``torch.onnx.export`` takes them."""


_LOOPS = frozenset(
    {
        functional.diagonal_recurrence,
        functional.gated_delta_rule,
        functional.generalized_delta_rule,
        functional.linear_attention,
        functional.lstm,
        functional.selective_scan,
    }
)


class TorchExportError(UserError):
    """PyTorch's exporter cannot export the model either."""


class _Positional(nn.Module):
    """A task as a module that takes and returns tensors by position, as ``torch.onnx.export`` requires."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model = model
        self.task = task

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        names = (value.name for value in self.task.inputs)
        return tuple(self.task.call(self.model, dict(zip(names, values, strict=True))).values())


class _NoLoops(TorchFunctionMode):
    """Refuses functions that loop over tokens, or over chunks of them.

    PyTorch's exporter would write as many repetitions as its example takes, for any number of tokens.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function is functional.most_numbered:
            raise NotImplementedError(
                f"the number of labels is a value of its input, which the exporter would fix. Export with {option_name('via')} fx"
            )
        if function in _LOOPS:
            raise NotImplementedError(
                f"{function.__name__} loops over tokens, and the exporter would fix their number. "
                f"Export with {option_name('via')} fx"
            )
        return function(*args, **(kwargs or {}))


def export_via_torch(model: nn.Module, tasks: Sequence[Task], directory: Path) -> list[onnx.ModelProto]:
    """Write each task's graph, with its own data file, for a model that holds its weights.

    Raises :class:`TorchExportError`.
    """
    return [_export(model, task, directory) for task in tasks]


def _export(model: nn.Module, task: Task, directory: Path) -> onnx.ModelProto:
    try:
        # With the fused kernels, torch.export records strides that its own decomposition does not keep.
        with _quiet(), sdpa_kernel(SDPBackend.MATH):
            program = program_of(model, task)
    except Exception as error:
        cause = _first_cause(error)
        reason = [type(cause).__name__, *str(cause).strip().splitlines()[:1]]
        raise TorchExportError(f"torch.onnx.export cannot export {task.name}: {': '.join(reason)}") from error
    path = directory / f"{task.name}.onnx"
    program.save(path, external_data=True)
    return onnx.load(path, load_external_data=False)


def program_of(model: nn.Module, task: Task) -> Any:
    """The ``torch.onnx.ONNXProgram`` of a task, with its names and symbolic sizes."""
    from exporters.steps.via_torch.export import TRANSLATIONS

    names, examples = [value.name for value in task.inputs], _examples(task)
    with torch.no_grad(), _NoLoops():
        outputs = list(task.call(model, dict(zip(names, examples, strict=True))))
    dynamic = tuple(
        {axis: torch.export.Dim.DYNAMIC for axis, dim in enumerate(value.dims) if isinstance(dim, str)}
        for value in task.inputs
    )
    program: Any = torch.onnx.export(
        _Positional(model, task).eval(),
        examples,
        input_names=names,
        output_names=outputs,
        dynamic_shapes=(dynamic,),
        opset_version=OPSET,
        dynamo=True,
        custom_translation_table=TRANSLATIONS,
        verbose=False,
    )
    import onnx_ir as ir

    for value, declared in zip(program.model.graph.inputs, task.inputs, strict=True):
        value.shape = ir.Shape(declared.dims)
    return program


def _first_cause(error: BaseException) -> BaseException:
    return error if error.__cause__ is None else _first_cause(error.__cause__)


def _examples(task: Task) -> tuple[Tensor, ...]:
    """Inputs with a different size above 1 for every symbol: sizes of 1 would be taken as fixed."""
    dims = [dim for value in task.inputs for dim in value.dims if isinstance(dim, str)]
    names = dict.fromkeys(task.derived[dim].source if dim in task.derived else dim for dim in dims)
    sizes = {name: size for size, name in enumerate((n for n in names if summands(n) == [n]), start=2)}
    sizes |= {name: sum(sizes.get(symbol, 0) for symbol in summands(name)) for name in names}
    sizes = task.numbers(sizes)
    return tuple(
        torch.ones([dim if isinstance(dim, int) else sizes[dim] for dim in value.dims], dtype=value.dtype)
        for value in task.inputs
    )


@contextlib.contextmanager
def _quiet() -> Any:
    """Suppress the exporter's output and warnings."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
