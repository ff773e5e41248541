"""A block as parts: their wiring comes from its forward, their descriptions from its spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from torch import nn

from specs.base.base import Component
from specs.kinds.attention import MultiHeadShape
from specs.kinds.block import BlockParts
from specs.kinds.conformer import ConvolutionModule
from specs.kinds.latent import Latent
from specs.kinds.mixture import Mixture
from specs.kinds.per_layer_embedding import PerLayerEmbedding
from specs.kinds.position import PositionKind
from specs.model.stack import Stack
from zoo.components.position import Position
from zoo.core.units import parameter_text
from zoo.drawing import wording
from zoo.drawing.diagram import AttentionPart, Element, ExpertsPart, Part, PartRole, Sum, Way
from zoo.drawing.following import Fork, PathStep, way_through
from zoo.drawing.following import Way as ReadWay
from zoo.drawing.mixer_wording import mixer_details
from zoo.drawing.parameters import Counts


@dataclass(frozen=True)
class StackFacts:
    """The sources of descriptions for the parts of a stack's blocks."""

    name: str
    spec: Stack
    module: nn.Module
    counts: Counts
    d_model: int
    causal: bool
    position: PositionKind

    def blocks(self, layers: Iterable[int]) -> tuple[str, ...]:
        """The paths of a module in some layers."""
        return tuple(f"{self.name}.blocks.{i}" for i in layers)


class BlockReader:
    """Reads the block of some layers."""

    def __init__(self, stack: StackFacts, block: BlockParts, layers: Sequence[int]) -> None:
        self._stack, self._spec, self._layers = stack, block, layers
        self._block = stack.module.get_submodule(f"blocks.{layers[0]}")

    def way(self) -> Way:
        """The parts of the block, or a single box if its forward cannot be followed."""
        read = way_through(self._block)
        if read is None or not self._weighted() <= {id(self._block.get_submodule(n)) for n in _names(read)}:
            return (self._part("other", wording.title(self._spec.kind), wording.said(self._spec), ""),)
        return tuple(self._elements(read))

    def _weighted(self) -> set[int]:
        """The modules of the block with weights, by identity."""
        return {id(child) for child in self._block.children() if next(child.parameters(), None) is not None}

    def _elements(self, way: ReadWay) -> Iterator[Element]:
        for each in way:
            if isinstance(each, Fork):
                yield Sum(tuple(tuple(self._elements(inner)) for inner in each.ways))
            elif each.is_module:
                yield self._module(each.name, reads_encoder=each.reads_encoder)
            else:
                yield Part("other", each.name)

    def _module(self, name: str, *, reads_encoder: bool = False) -> Part:
        module = self._block.get_submodule(name)
        kind = str(getattr(module, "component_kind", type(module).__name__))
        spec = getattr(self._spec, name, None)
        if name == "cross_attention":
            spec = spec or self._spec.attention
        if isinstance(spec, ConvolutionModule):
            details = wording.convolution_details(spec, self._stack.d_model)
            return self._part("mixer", "Gated convolution", details, name)
        if isinstance(spec, Component):
            match name:
                case "attention" | "cross_attention":
                    return self._attention(name, spec, module, reads_encoder)
                case "feed_forward" | "first_feed_forward":
                    return self._feed_forward(name, spec)
                case "mixer":
                    return self._part("mixer", wording.title(spec.kind), mixer_details(spec), name)
        if isinstance(spec, PerLayerEmbedding):
            (rows, width), *_ = (self._stack.counts.sizes(path) for path in self._paths(f"{name}.table"))
            details = [wording.sizes(rows, width), f"gated, {wording.ACTIVATIONS[spec.activation]}"]
            return self._part("embedding", wording.title(kind), details, name)
        role: PartRole = "norm" if wording.slot_of(kind) == "norm" else "other"
        return self._part(role, wording.title(kind), [], name)

    def _feed_forward(self, name: str, spec: Component) -> Part:
        details = wording.feed_forward_details(spec, self._stack.d_model)
        details += wording.sharing_details(self._spec.sharing, "feed_forward")
        if not isinstance(spec, Mixture):
            return self._part("feed-forward", wording.feed_forward_title(spec), details, name)
        counts = self._stack.counts
        idle = counts.of(self._paths(f"{name}.experts")[:1]) * (spec.experts - spec.top_k) // spec.experts
        details.append(f"{parameter_text(counts.of(self._paths(name)[:1]) - idle)} active")
        return ExpertsPart(**vars(self._part("feed-forward", wording.title(spec.kind), details, name)))

    def _attention(self, name: str, spec: Component, module: nn.Module, reads_encoder: bool) -> AttentionPart:
        drawn_within: list[Part] = []
        norm = getattr(spec, "qk_norm", None)
        if isinstance(spec, MultiHeadShape) and norm is not None:
            over = {"head": "per head", "width": "over heads", "each_head": "of each head"}[norm.over]
            names = (
                [f"{name}.query_norm"]
                if spec.reuses_keys_values
                else [f"{name}.query_norm", f"{name}.key_norm"]
            )
            drawn_within.append(self._part("norm", wording.title(norm.norm.kind), [over], *names))
        scores = None
        if not reads_encoder:
            position, acts, paths = self._position(name, spec, module)
            if overrides(acts, "rotate"):
                drawn_within.append(self._of_position(position, spec, ()))
            if overrides(acts, "bias") or overrides(acts, "layer_bias"):
                scores = self._of_position(position, spec, paths)
        details = wording.attention_details(
            spec, self._stack.d_model, causal=self._stack.causal, cross=reads_encoder
        )
        if name == "attention":
            details += wording.sharing_details(self._spec.sharing, "attention")
        title = wording.title(spec.kind)
        if reads_encoder:
            details, title = [title.removesuffix(" attention"), *details], "Cross-attention"
        without = [path for part in [*drawn_within, scores] if part is not None for path in part.modules]
        part = self._part("attention", title, details, name, without=without)
        return AttentionPart(
            **vars(part),
            on_queries_keys=tuple(drawn_within),
            on_scores=scores,
            reads_encoder=reads_encoder,
            reuses_keys_values=getattr(spec, "reuses_keys_values", False),
        )

    def _position(
        self, name: str, spec: Component, module: nn.Module
    ) -> tuple[PositionKind, nn.Module, tuple[str, ...]]:
        """The position that acts in an attention, its module, and the module's paths."""
        own = getattr(spec, "position", None) or self._stack.position
        if getattr(module, "position", None) is None:
            return self._stack.position, self._stack.module.position, (f"{self._stack.name}.position",)  # type: ignore[return-value]
        return own, module.position, self._paths(f"{name}.position")  # type: ignore[return-value]

    def _of_position(self, position: PositionKind, spec: Component, paths: tuple[str, ...]) -> Part:
        width = spec.head_width(self._stack.d_model) if isinstance(spec, MultiHeadShape | Latent) else 0
        details = wording.position_details(position, None, width)
        each = [self._stack.counts.of([path]) for path in paths]
        count = self._stack.counts.text(each, paths)
        return Part("position", wording.title(position.kind), tuple(details), paths, sum(each), count)

    def _paths(self, name: str) -> tuple[str, ...]:
        return tuple(f"{path}.{name}" if name else path for path in self._stack.blocks(self._layers))

    def _part(
        self, role: PartRole, title: str, details: Sequence[str], *names: str, without: Sequence[str] = ()
    ) -> Part:
        """A part that stands for modules of the block, in all its layers."""
        by_layer = list(zip(*(self._paths(name) for name in names), strict=True))
        paths = tuple(path for layer in by_layer for path in layer)
        counts = self._stack.counts
        each = [
            counts.of(layer, [w for w in without if any(w.startswith(f"{p}.") for p in layer)])
            for layer in by_layer
        ]
        return Part(role, title, tuple(details), paths, sum(each), counts.text(each, paths))


def overrides(position: nn.Module, method: str) -> bool:
    """Whether a position acts in a given one of its ways."""
    return getattr(type(position), method) is not getattr(Position, method)


def _names(way: ReadWay) -> Iterator[str]:
    for each in way:
        if isinstance(each, PathStep):
            yield from [each.name] if each.is_module else []
        else:
            for inner in each.ways:
                yield from _names(inner)
