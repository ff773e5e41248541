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
        """This operation and the operations of the graphs inside it."""
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
    """A tensor of the data file that the graph uses; its offset is decided when the file is laid out."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    content: Content
    part: int = 0


def matching_precision(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Round the float32 copies of weights that are also stored in half precision, so that both copies agree.

    Layers that share a norm may apply it to either dtype.
    """
    contents = [
        parameter.content for parameter in parameters.values() if isinstance(parameter.content, StoredContent)
    ]
    halves = {content.names: content.dtype for content in contents if content.dtype in HALF}

    def matched(parameter: Parameter) -> Parameter:
        half = halves.get(parameter.content.names)
        if (
            half is None
            or not isinstance(parameter.content, StoredContent)
            or parameter.dtype != torch.float32
        ):
            return parameter
        return replace(parameter, content=StoredContent(parameter.content.names, parameter.dtype, half))

    return {name: matched(parameter) for name, parameter in parameters.items()}


@dataclass(frozen=True)
class Graph:
    """A finished graph. Its weights are declared; their offsets are decided when it is written.

    ``cache_slots`` is the number of slots of a static cache; ``unrounded`` holds the float64 values of constants that are
    stored in half precision; ``adapters`` are the matrices that an adapter gives, without columns or rows by default.
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
    adapters: list[Value] = field(default_factory=list)

    @property
    def padding(self) -> Padding:
        """The side of the padding in its rows."""
        counted = [node for node in self.nodes if node.op == "GroupQueryAttention"]
        if any("sliding_window_cache" in node.attributes for node in counted):
            return "none"
        return "right" if counted or self.cache_slots else "either"
