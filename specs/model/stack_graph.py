"""The graph of a model's stacks: what each reads, and how their outputs reach another stack or the head."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from specs.model.model import Model
from specs.model.stack import Stack, StackName

By = Literal["cross_attention", "placeholder", "output", "tower"]


@dataclass(frozen=True)
class StackNode:
    """A stack: its input with the sizes of one (None if any length), its width, depth, position and direction."""

    input: str
    sizes: tuple[int, ...] | None
    context_length: int | None
    d_model: int
    layers: int
    position: str
    causal: bool

    @staticmethod
    def of(name: StackName, stack: Stack, spec: Model) -> StackNode:
        """The node of a model's stack."""
        embedding, length = spec.embedding_of(stack), spec.context_length_of(stack)
        return StackNode(
            embedding.input_name,
            None if embedding.any_length else embedding.input_shape(length),
            length,
            spec.width_of(stack),
            stack.depth,
            spec.position_of(stack).kind,
            spec.is_causal(name),
        )

    def __str__(self) -> str:
        sizes = "" if self.sizes is None else f" of {' x '.join(map(str, self.sizes))}"
        length = "" if self.context_length is None else f", context_length {self.context_length}"
        layers = f"{self.layers} layer{'s' if self.layers > 1 else ''}"
        direction = "causal" if self.causal else "bidirectional"
        return f"reads {self.input}{sizes}{length}; d_model {self.d_model}, {layers}, {direction}, position {self.position}"


@dataclass(frozen=True)
class Edge:
    """The way of a stack's output to another stack, or to the head.

    ``kind`` is that of the connector, of the vector that a tower gives, or of the head; None for cross-attention. ``token`` is the
    placeholder that is replaced, and ``vectors`` the number of vectors per image (None for images of any size), both of an edge by
    placeholder tokens.
    """

    source: str
    target: str
    by: By
    source_width: int
    target_width: int
    kind: str | None = None
    token: int | None = None
    vectors: int | None = None

    def __str__(self) -> str:
        way = f"{self.source} -> {self.target}"
        match self.by:
            case "cross_attention":
                return f"{way}: cross-attention of every layer, from width {self.source_width} to {self.target_width}"
            case "placeholder":
                return (
                    f"{way}: {self.vectors or 'the'} vectors of an image replace tokens {self.token}, "
                    f"through connector {self.kind} from width {self.source_width} to {self.target_width}"
                )
            case "tower":
                return f"{way}: one vector, through head {self.kind} from width {self.source_width} to {self.target_width}"
            case _:
                return f"{way}: {self.kind}, of width {self.target_width}"


@dataclass(frozen=True)
class StackGraph:
    """The stacks of a model by name, in the order in which they run, and the edges between them and to the head."""

    stacks: dict[StackName, StackNode]
    edges: tuple[Edge, ...]

    @staticmethod
    def of(spec: Model) -> StackGraph:
        """The graph of a model."""
        nodes = {name: StackNode.of(name, stack, spec) for name, stack in spec.stacks()}
        return StackGraph(nodes, (*_between(spec), *_to_head(spec)))

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "stacks": {name: asdict(node) for name, node in self.stacks.items()},
            "edges": [
                {key: value for key, value in asdict(edge).items() if value is not None}
                for edge in self.edges
            ],
        }

    def __str__(self) -> str:
        stacks = [f"  {name}: {node}" for name, node in self.stacks.items()]
        return "\n".join(["Stacks:", *stacks, "Edges:", *(f"  {edge}" for edge in self.edges)])


def _between(spec: Model) -> Iterator[Edge]:
    """The edges from one stack to another."""
    if spec.decoder is None:
        return
    width = spec.width_of(spec.decoder)
    if spec.encoder is not None:
        yield Edge("encoder", "decoder", "cross_attention", spec.width_of(spec.encoder), width)
    if spec.image is not None and spec.connector is not None:
        yield Edge(
            "image",
            "decoder",
            "placeholder",
            spec.width_of(spec.image),
            width,
            spec.connector.kind,
            spec.connector.token,
            None if spec.packs_images else spec.vectors_per_image,
        )


def _to_head(spec: Model) -> Iterator[Edge]:
    """The edges to the head: of the last stack, or of every tower."""
    towers = [(name, stack) for name, stack in spec.stacks() if stack.head is not None]
    for name, stack in towers:
        width = spec.width_of(stack)
        head: Any = stack.head
        yield Edge(name, "head", "tower", width, head.vector_width(width), head.kind)
    if not towers:
        width = spec.output_width
        yield Edge(spec.last_stack_name, "head", "output", width, width, spec.head.kind)
