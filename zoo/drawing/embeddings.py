"""Embeddings in drawings: from the inputs to the first layer, in the order of each embedding's forward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specs.base.words import PartContext, PositionStep, product
from specs.model.model import Model
from specs.model.stack import Stack, StackName
from zoo.drawing.diagram import Element, Joined, Label
from zoo.drawing.parameters import Counts
from zoo.drawing.steps import StepReader


def embedding_elements(
    spec: Model, name: StackName, stack: Stack, path: str, context: PartContext, counts: Counts
) -> Iterator[Element]:
    """The inputs of a stack and the parts of its embedding at ``path``."""
    embedding = spec.embedding_of(stack)
    batch = () if embedding.packed else ("B",)
    sizes = embedding.drawn_input(context.length, spec.context_length_of(stack))
    yield Label(embedding.input_title, product(*batch, *sizes), "begin")
    position = _position(spec, name, stack, f"{path}.position", context, counts)
    apart = [] if position is None else position.part.modules
    keys = "embedding" if stack.embedding is None else f"{name}.embedding"
    reader = StepReader(counts, path, keys, "embedding", apart)
    for step in embedding.steps(context):
        if not isinstance(step, PositionStep):
            yield reader.element(step)
        elif position is not None:
            yield position


def position_keys(name: StackName, stack: Stack) -> str:
    """The path in the spec of a stack's position."""
    return "position" if stack.position is None else f"{name}.position"


def _position(
    spec: Model, name: StackName, stack: Stack, path: str, context: PartContext, counts: Counts
) -> Joined | None:
    """The position that is added to the embedding, or None."""
    position = spec.position_of(stack)
    if not position.embedded:
        return None
    rows = next(iter(counts.sizes(f"{path}.table")), None)
    width = spec.embedding_of(stack).position_width(context.width)
    details = position.details(replace(context, width=width, rows=rows))
    return Joined(counts.part("position", position.heading, details, path, position_keys(name, stack)))
