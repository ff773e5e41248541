"""The graphs of a dual encoder: each of its encoders alone, and both with the head in which their vectors meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from specs.model.model import Model
from specs.model.stack import StackName
from zoo.tracing.symbols import Placeholder
from zoo.tracing.task import BATCH, Task, stack_inputs

TEXT_MODEL, VISION_MODEL = "text_model", "vision_model"
READS: dict[str, StackName] = {TEXT_MODEL: "text", VISION_MODEL: "image"}
"""The stack that each graph of one encoder runs."""


def dual_encoder_tasks(spec: Model) -> list[Task]:
    """The graph of each encoder, named as clients expect, and that of the whole."""
    return [*(_alone(spec, task, name) for task, name in READS.items()), whole_task(spec, "model")]


def whole_task(spec: Model, name: str) -> Task:
    """All texts and all images, of which there may be another number."""
    text, image = (_inputs(spec, stack, f"{stack}_{BATCH}") for stack in READS.values())

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return model(
            values["input_ids"],
            values["pixel_values"],
            values.get("attention_mask"),
            values.get("token_type_ids"),
        )

    return Task(name, (*text, *image), call)


def _alone(spec: Model, task: str, name: StackName) -> Task:
    inputs = _inputs(spec, name, BATCH)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return model.encode(
            name, values[inputs[0].name], values.get("attention_mask"), values.get("token_type_ids")
        )

    return Task(task, inputs, call)


def _inputs(spec: Model, name: StackName, batch: str) -> tuple[Placeholder, ...]:
    """The inputs of an encoder, with the name of their number of rows."""
    inputs = stack_inputs(spec, getattr(spec, name), "sequence_length")
    return tuple(replace(each, dims=(batch, *each.dims[1:])) for each in inputs)
