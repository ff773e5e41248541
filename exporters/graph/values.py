"""An ONNX graph before it is written: values, operations, and declared weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from exporters.graph.content import Content, StoredContent
from exporters.target.targets import HALF, Padding

STATED_ROUNDING = "StatedRounding"
"""The label of operations that round as the architecture requires, whatever the precision."""


@dataclass(eq=False, slots=True)
class Value:
    """A tensor in a graph: its name, the node that computes it (None for an input or a weight), and its known dtype
    and dims."""

    name: str
    node: Node | None = None
    dtype: torch.dtype | None = None
    dims: tuple[int | str | None, ...] | None = None


@dataclass(eq=False, slots=True)
class Node:
    """An operation in a graph; an omitted input is None."""

    op: str
    domain: str
    inputs: tuple[Value | None, ...]
    outputs: list[Value]
    attributes: dict[str, Any]
    name: str

    @property
    def within(self) -> list[Node]:
        """The operation, and those of the graphs inside it."""
        bodies = (body for body in self.attributes.values() if isinstance(body, Body))
        return [self, *(inner for body in bodies for node in body.nodes for inner in node.within)]


@dataclass(eq=False, repr=False)
class Body:
    """The graph inside an operation such as Scan or If. It may read every value computed before the operation."""

    name: str
    inputs: list[Value]
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)


@dataclass(frozen=True)
class Parameter:
    """A tensor of the data file that the graph uses; its place is decided when the file is laid out."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    content: Content
    part: int = 0


def agreeing(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """The weights, where those that the graph reads in half too have the same values in float32: layers that share a norm may
    apply it to either."""
    contents = [each.content for each in parameters.values() if isinstance(each.content, StoredContent)]
    halves = {content.names: content.dtype for content in contents if content.dtype in HALF}

    def agreed(each: Parameter) -> Parameter:
        half = halves.get(each.content.names)
        if half is None or not isinstance(each.content, StoredContent) or each.dtype != torch.float32:
            return each
        return replace(each, content=StoredContent(each.content.names, each.dtype, half))

    return {name: agreed(each) for name, each in parameters.items()}


@dataclass(frozen=True)
class Graph:
    """A finished graph. Its weights are declared; their places are decided when it is written.

    ``cache_slots`` is the length of caches of fixed length; ``unrounded`` are the float64 values of constants that
    are stored in half precision.
    """

    name: str
    opset: int
    domains: frozenset[str]
    inputs: list[Value]
    outputs: list[Value]
    nodes: list[Node]
    parameters: dict[str, Parameter]
    constants: dict[str, np.ndarray[Any, Any]]
    cache_slots: int | None = None
    unfused: list[str] = field(default_factory=list)
    unrounded: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    @property
    def padding(self) -> Padding:
        """The side on which its rows take padding."""
        counted = any(node.op == "GroupQueryAttention" for node in self.nodes)
        return "right" if counted or self.cache_slots else "either"
