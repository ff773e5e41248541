"""Heads in drawings: from the last layer to the outputs."""

from __future__ import annotations

from collections.abc import Iterator

from specs.base.words import PartContext
from specs.kinds.head import HeadKind
from zoo.drawing.diagram import Element, Label
from zoo.drawing.parameters import Counts
from zoo.drawing.steps import StepReader


def head_elements(
    head: HeadKind, path: str, keys: str, context: PartContext, counts: Counts
) -> Iterator[Element]:
    """The parts of the head at ``path`` in order, and its outputs; ``keys``: its path in the spec."""
    return StepReader(counts, path, keys, "head").head(head.steps(context))


def vector_elements(
    head: HeadKind, path: str, keys: str, context: PartContext, counts: Counts
) -> Iterator[Element]:
    """The parts of a head whose vector goes on to another head."""
    *parts, end = head_elements(head, path, keys, context, counts)
    yield from parts
    if isinstance(end, Label):
        yield Label("", end.shape)
