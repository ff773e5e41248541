"""Optimization profiles: the range of each size for which a compiler prepares a graph, derived from the spec.

A dim has the same range in every input, and derived sizes are consistent at each end of the ranges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from specs.model.model import Model
from specs.model.stack import Stack
from zoo.core.graph_names import IMAGE_FEATURES, VISION_ENCODER
from zoo.tracing.dual_encoder_tasks import READS
from zoo.tracing.symbols import summands
from zoo.tracing.task import ENCODER, ENCODER_LENGTH, IMAGES, VECTORS, Task

ROWS = 8
"""The largest batch, and the largest number of images per call."""

TOKENS = 2048
"""The largest number of tokens per call: a decoder reads longer prompts in pieces."""

COMMON = 128
"""The length to optimize an encoder for."""

UNLIMITED = 1024
"""The largest length of a model without a limit."""


ENDS = ("min", "opt", "max")
"""The option names of the smallest, the common and the largest shapes."""


class Sizes(NamedTuple):
    """The smallest size of a dim, the size to optimize for, and the largest."""

    least: int
    common: int
    most: int


class ShapeRange(NamedTuple):
    """The smallest shape of an input, the shape to optimize for, and the largest."""

    least: tuple[int, ...]
    common: tuple[int, ...]
    most: tuple[int, ...]


Shapes = Mapping[str, ShapeRange]
"""The shapes of the inputs of a graph by name."""


def profile(spec: Model, task: Task) -> Shapes:
    """The shapes of all inputs of a task's graph by name, static shapes included."""
    free = _free_sizes(spec, task)
    numbers_by_end = [task.numbers({name: sizes[end] for name, sizes in free.items()}) for end in range(3)]
    return {
        placeholder.name: ShapeRange(
            *(tuple(_size(dim, numbers) for dim in placeholder.dims) for numbers in numbers_by_end)
        )
        for placeholder in task.inputs
    }


def provider_options(shapes: Shapes) -> dict[str, str]:
    """A profile as options of ONNX Runtime's TensorRT provider; trtexec takes the same values."""
    varying = {name: shape for name, shape in shapes.items() if shape.least != shape.most}
    return {
        f"trt_profile_{end}_shapes": ",".join(
            f"{name}:{'x'.join(map(str, shape[end_index]))}" for name, shape in varying.items()
        )
        for end_index, end in enumerate(ENDS)
    }


def read_options(options: Mapping[str, str]) -> Shapes:
    """Read the shapes from the result of :func:`provider_options`."""
    read: dict[str, list[tuple[int, ...]]] = {}
    for end in ENDS:
        for option in options[f"trt_profile_{end}_shapes"].split(","):
            name, _, dims = option.rpartition(":")
            read.setdefault(name, []).append(tuple(map(int, dims.split("x"))))
    return {name: ShapeRange(*shapes) for name, shapes in read.items()}


def _size(dim: int | str, numbers: Mapping[str, int]) -> int:
    return dim if isinstance(dim, int) else sum(numbers[symbol] for symbol in summands(dim))


def _free_sizes(spec: Model, task: Task) -> dict[str, Sizes]:
    """The sizes of all symbols that are not derived from others."""
    names = [
        name
        for placeholder in task.inputs
        for dim in placeholder.dims
        if isinstance(dim, str)
        for name in summands(dim)
    ]
    names = [task.derived[name].source if name in task.derived else name for name in dict.fromkeys(names)]
    return {name: _sizes(spec, task, name, names) for name in names}


def _sizes(spec: Model, task: Task, name: str, names: Sequence[str]) -> Sizes:
    optional = any(placeholder.name == IMAGE_FEATURES for placeholder in task.inputs)  # text without images
    if name.endswith("batch_size") or name == IMAGES:
        return Sizes(int(name != IMAGES or not optional), 1, ROWS)
    if name == ENCODER_LENGTH and spec.encoder is not None:
        longest = spec.context_length_of(spec.encoder)
    elif name == VECTORS or task.name == VISION_ENCODER:
        longest = spec.context_length_of(spec.last_stack)
    else:
        longest = longest_sequence(task, spec)
    most = min(longest or UNLIMITED, TOKENS)
    if name == VECTORS:
        return Sizes(int(not optional), min(COMMON, most), most)
    generates = any(placeholder.name.startswith("past_") for placeholder in task.inputs)
    if not generates or name == ENCODER_LENGTH:
        return Sizes(1, min(COMMON, most), most)
    if not any(other.startswith("past_") for other in names):
        return Sizes(1, 1, most)
    half = max(1, most // 2)  # past and new tokens together
    return Sizes(0, half, most - half) if name.startswith("past_") else Sizes(1, 1, half)


def longest_sequence(task: Task, spec: Model) -> int | None:
    """The largest number of tokens per row of a graph, past tokens and padding included; None without a limit.

    Beyond it the tables of positions and rotations end, and ONNX Runtime fails.
    """
    name = READS.get(task.name, "encoder" if task.name == ENCODER else None)
    stack: Stack = getattr(spec, name) if name else spec.last_stack
    return task.cache_slots or spec.context_length_of(stack)
