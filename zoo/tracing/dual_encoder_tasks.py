"""The graphs of a dual encoder: each encoder alone, and the whole model with its head, which can be read alone, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from specs.model.model import Model
from specs.model.stack import StackName
from zoo.context import StackContext
from zoo.core.remembering import parts_key
from zoo.tracing.symbols import Placeholder
from zoo.tracing.task import BATCH, Task, stack_inputs

TEXT_MODEL, VISION_MODEL = "text_model", "vision_model"
READS: dict[str, StackName] = {TEXT_MODEL: "text", VISION_MODEL: "image"}
"""The stack of each single-encoder graph."""


Outputs = Callable[[Task], Sequence[Placeholder]]
"""Finds the outputs of a task, as inputs of another."""


def dual_encoder_tasks(spec: Model) -> list[Task]:
    """The graph of each encoder, named as clients expect, and the graph of the whole model."""
    return [*(_alone(spec, task, name) for task, name in READS.items()), whole_task(spec, "model")]


def whole_task(spec: Model, name: str) -> Task:
    """The whole model on all texts and all images, whose numbers may differ."""
    text, image = (_inputs(spec, stack, f"{stack}_{BATCH}") for stack in READS.values())

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return model(
            values["input_ids"],
            values["pixel_values"],
            values.get("attention_mask"),
            values.get("token_type_ids"),
        )

    return Task(name, (*text, *image), call)


def dual_encoder_parts(model: Any, spec: Model, outputs: Outputs) -> list[Task]:
    """The parts of the whole model: each encoder alone, and the head on their ``outputs``."""
    encoders = [_alone(spec, task, name) for task, name in READS.items()]
    text, image = (
        [
            replace(output, dims=tuple(f"{stack}_{BATCH}" if dim == BATCH else dim for dim in output.dims))
            for output in outputs(task)
        ]
        for task, stack in zip(encoders, READS.values(), strict=True)
    )
    vector = next(output for output in text if output.name == f"{TEXT_MODEL}.{model.text_head.output}")
    named = {output.name.removeprefix(f"{VISION_MODEL}."): output for output in image}
    handed: dict[str, Placeholder] = model.image_head.handed(named)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        images = {name: values[placeholder.name] for name, placeholder in handed.items()}
        return dict(model.head(values[vector.name], **images))

    about = parts_key(spec.head, StackContext.of(spec, "text"), tuple(handed))
    return [*encoders, Task("head", (vector, *handed.values()), call, about=about)]


def _alone(spec: Model, task: str, name: StackName) -> Task:
    inputs = _inputs(spec, name, BATCH)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return model.encode(
            name, values[inputs[0].name], values.get("attention_mask"), values.get("token_type_ids")
        )

    stack = spec.stack(name)
    about = parts_key(stack, spec.embedding_of(stack), StackContext.of(spec, name))
    return Task(task, inputs, call, about=about)


def _inputs(spec: Model, name: StackName, batch: str) -> tuple[Placeholder, ...]:
    """The inputs of an encoder, with ``batch`` as the name of their first axis."""
    inputs = stack_inputs(spec, spec.stack(name), "sequence_length")
    return tuple(replace(placeholder, dims=(batch, *placeholder.dims[1:])) for placeholder in inputs)
