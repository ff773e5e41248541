"""Optimization profiles: the sizes that a compiler prepares a graph for, from the spec.

A dim has the same sizes in every input, and sizes that follow from others do so at each end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from specs.model.model import Model
from zoo.core.graph_names import IMAGE_FEATURES, VISION_ENCODER
from zoo.tracing.dual_encoder_tasks import READS
from zoo.tracing.symbols import size_of, summands
from zoo.tracing.task import ENCODER, ENCODER_LENGTH, IMAGES, VECTORS, Task

ROWS = 8
"""The largest batch, and the largest number of images of a call."""

TOKENS = 2048
"""The largest number of tokens of a call: longer prompts of a decoder are given in pieces."""

COMMON = 128
"""The length that an encoder is optimized for."""

UNLIMITED = 1024
"""The largest length where the model limits none."""


ENDS = ("min", "opt", "max")
"""The words of options for the smallest, the common and the largest shapes."""


class Sizes(NamedTuple):
    """The smallest size of a dim, the one to optimize for, and the largest."""

    least: int
    common: int
    most: int


class ShapeRange(NamedTuple):
    """The same of an input's shape."""

    least: tuple[int, ...]
    common: tuple[int, ...]
    most: tuple[int, ...]


Shapes = Mapping[str, ShapeRange]
"""The shapes of the inputs of a graph by name."""


def profile(spec: Model, task: Task) -> Shapes:
    """The shapes of the inputs of a task's graph by name, static shapes included."""
    ranges = _given(spec, task)
    ends = [task.numbers({name: sizes[end] for name, sizes in ranges.items()}) for end in range(3)]
    return {
        value.name: ShapeRange(*(tuple(size_of(dim, numbers) for dim in value.dims) for numbers in ends))
        for value in task.inputs
    }


def provider_options(shapes: Shapes) -> dict[str, str]:
    """A profile as options of ONNX Runtime's TensorRT provider, in the syntax of trtexec."""
    varying = {name: shape for name, shape in shapes.items() if shape.least != shape.most}
    return {
        f"trt_profile_{end}_shapes": ",".join(
            f"{name}:{'x'.join(map(str, shape[index]))}" for name, shape in varying.items()
        )
        for index, end in enumerate(ENDS)
    }


def read_options(options: Mapping[str, str]) -> Shapes:
    """The shapes that :func:`provider_options` states."""
    shapes_by_name: dict[str, list[tuple[int, ...]]] = {}
    for end in ENDS:
        for text in options[f"trt_profile_{end}_shapes"].split(","):
            name, _, dims = text.rpartition(":")
            shapes_by_name.setdefault(name, []).append(tuple(map(int, dims.split("x"))))
    return {name: ShapeRange(*shapes) for name, shapes in shapes_by_name.items()}


def _given(spec: Model, task: Task) -> dict[str, Sizes]:
    """The sizes of all symbols that do not follow from others."""
    names = [
        name for value in task.inputs for dim in value.dims if isinstance(dim, str) for name in summands(dim)
    ]
    names = [task.derived[name].source if name in task.derived else name for name in dict.fromkeys(names)]
    return {name: _sizes(spec, task, name, names) for name in names}


def _sizes(spec: Model, task: Task, name: str, names: Sequence[str]) -> Sizes:
    optional = any(value.name == IMAGE_FEATURES for value in task.inputs)  # text without images
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
    generates = any(value.name.startswith("past_") for value in task.inputs)
    if not generates or name == ENCODER_LENGTH:
        return Sizes(1, min(COMMON, most), most)
    if not any(other.startswith("past_") for other in names):
        return Sizes(1, 1, most)
    half = max(1, most // 2)  # past and new tokens together
    return Sizes(0, half, most - half) if name.startswith("past_") else Sizes(1, 1, half)


def longest_sequence(task: Task, spec: Model) -> int | None:
    """The largest number of tokens in a row of a graph, past tokens and padding included; None without a limit.

    Beyond it the tables of positions and rotations end, and ONNX Runtime fails.
    """
    name = READS.get(task.name) or ("encoder" if task.name == ENCODER else None)
    stack = spec.stack(name) if name else spec.last_stack
    return task.cache_slots or spec.context_length_of(stack)
