"""The layers of a stack as frames: what is repeated is drawn once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import nn

from specs.attention import MultiHeadShape
from specs.base import Component
from specs.block import BlockParts
from specs.mixture import Mixture
from specs.position import PositionKind
from specs.stack import LayerRun, Stack
from zoo.components.position import Position
from zoo.drawing import wording
from zoo.drawing.diagram import AttentionPart, Element, ExpertsPart, Frame, Part, Role, Sum, Way
from zoo.drawing.following import Fork, Step, way_through
from zoo.drawing.following import Way as ReadWay
from zoo.drawing.parameters import Counts

MOST_BLOCKS = 4
"""So many different blocks of a stack are drawn in full; those that follow are a box each."""


@dataclass(frozen=True)
class StackFacts:
    """What the parts of a stack's blocks are described by."""

    name: str
    spec: Stack
    module: nn.Module
    counts: Counts
    d_model: int
    causal: bool
    position: PositionKind


def layer_frames(stack: StackFacts) -> Iterator[Frame]:
    """The frames of a stack, from the first layer to the last."""
    drawn: list[BlockParts] = []
    start = 0
    for entry in stack.spec.layers if not isinstance(stack.spec.layers, int) else stack.spec.runs():
        if isinstance(entry, LayerRun):
            yield _run(stack, entry, [start + i for i in range(entry.repeat)], drawn, "layer")
            start += entry.repeat
            continue
        period = sum(run.repeat for run in entry.pattern)
        frames, offset = [], start
        for run in entry.pattern:
            first = range(offset, offset + run.repeat)
            layers = [i + time * period for time in range(entry.repeat) for i in first]
            frames.append(_run(stack, run, layers, drawn, "layer"))
            offset += run.repeat
        layers = list(range(start, start + entry.repeat * period))
        yield Frame(
            _times(entry.repeat, "", entry.shared), _total(stack, layers, entry.repeat), tuple(frames)
        )
        start += entry.repeat * period


def _run(stack: StackFacts, run: LayerRun, layers: list[int], drawn: list[BlockParts], word: str) -> Frame:
    block = stack.spec.named_block(run.use)
    name = run.use or ("block" if stack.spec.blocks else f"{stack.name} {word}")
    label = _times(run.repeat, name, run.shared)
    if block in drawn or len(drawn) == MOST_BLOCKS:
        part = _brief(stack, block, layers, drawn.index(block) if block in drawn else None)
        return Frame(label, _total(stack, layers, len(layers)), (part,))
    drawn.append(block)
    reader = _BlockReader(stack, block, layers)
    return Frame(label, _total(stack, layers, len(layers)), reader.way())


def _times(repeat: int, name: str, shared: bool) -> str:
    same = ", the same weights" if shared and repeat > 1 else ""
    return " ".join(filter(None, [f"× {repeat}" if repeat > 1 else "", name])) + same or "× 1"


def _total(stack: StackFacts, layers: Sequence[int], times: int) -> str:
    """The parameters of some layers: of each where they are equal, else of all."""
    each = [stack.counts.of([f"{stack.name}.blocks.{i}"]) for i in layers]
    if times == len(layers) and len(set(each)) == 1 and times > 1:
        return f"{wording.count_text(each[0])} each"
    return wording.count_text(sum(each)) if sum(each) else ""


def _brief(stack: StackFacts, block: BlockParts, layers: list[int], as_drawn: int | None) -> Part:
    """A box for a block that is drawn elsewhere, or is one too many."""
    paths = tuple(f"{stack.name}.blocks.{i}" for i in layers)
    each = [stack.counts.of([path]) for path in paths]
    attention = wording.attention_details(block.attention, stack.d_model, causal=stack.causal)
    details = [*attention, *wording.feed_forward_details(block.feed_forward, stack.d_model)]
    return Part(
        "other",
        "Wired as below" if as_drawn is not None else wording.title(block.kind),
        tuple(details),
        paths,
        sum(each),
        stack.counts.text(each, paths),
    )


class _BlockReader:
    """Turns the way that was read from a block's forward into described parts."""

    def __init__(self, stack: StackFacts, block: BlockParts, layers: list[int]) -> None:
        self._stack, self._spec, self._layers = stack, block, layers
        self._block: nn.Module = stack.module.blocks[layers[0]]  # type: ignore[index,union-attr]

    def way(self) -> Way:
        """The parts of the block; one box where its forward cannot be followed."""
        read = way_through(self._block)
        if read is None:
            return (self._part("other", wording.title(self._spec.kind), wording.said(self._spec), ""),)
        way = tuple(self._elements(read))
        missing = set(self._children()) - set(_names(read))
        return way if not missing else (*way, *(self._module(name) for name in sorted(missing)))

    def _children(self) -> list[str]:
        counts = self._stack.counts.modules
        paths = [
            (name, f"{self._stack.name}.blocks.{self._layers[0]}.{name}") for name in self._block._modules
        ]
        return [name for name, path in paths if path in counts and counts[path].weights]

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
        if isinstance(spec, Component):
            match wording.slot_of(spec.kind):
                case "attention":
                    return self._attention(name, spec, module, reads_encoder)
                case "feed_forward":
                    return self._feed_forward(name, spec)
        role: Role = "norm" if wording.slot_of(kind) == "norm" else "other"
        return self._part(role, wording.title(kind), [], name)

    def _feed_forward(self, name: str, spec: Component) -> Part:
        part = self._part(
            "feed-forward",
            wording.feed_forward_title(spec),
            wording.feed_forward_details(spec, self._stack.d_model),
            name,
        )
        return ExpertsPart(**vars(part)) if isinstance(spec, Mixture) else part

    def _attention(self, name: str, spec: Component, module: nn.Module, reads_encoder: bool) -> AttentionPart:
        drawn_within: list[Part] = []
        norm = getattr(spec, "qk_norm", None)
        if isinstance(spec, MultiHeadShape) and norm is not None:
            over = {"head": "per head", "width": "over all heads", "each_head": "one for each head"}[
                norm.over
            ]
            names = [f"{name}.query_norm", f"{name}.key_norm"]
            drawn_within.append(self._part("norm", wording.title(norm.norm.kind), [over], *names))
        scores = None
        if not reads_encoder:
            position, acts, paths = self._position(name, spec, module)
            if overrides(acts, "rotate"):
                drawn_within.append(self._of_position(position, spec, ()))
            if overrides(acts, "bias"):
                scores = self._of_position(position, spec, paths)
        details = wording.attention_details(
            spec, self._stack.d_model, causal=self._stack.causal, cross=reads_encoder
        )
        title = wording.title(spec.kind)
        if reads_encoder:
            details, title = [title.removesuffix(" attention"), *details], "Cross-attention"
        without = [path for part in [*drawn_within, scores] if part is not None for path in part.modules]
        part = self._part("attention", title, details, name, without=without)
        return AttentionPart(
            **vars(part), on_queries_keys=tuple(drawn_within), on_scores=scores, reads_encoder=reads_encoder
        )

    def _position(
        self, name: str, spec: Component, module: nn.Module
    ) -> tuple[PositionKind, nn.Module, tuple[str, ...]]:
        """The position in force in an attention, its module, and the paths of that."""
        own = getattr(spec, "position", None)
        if own is None:
            return self._stack.position, self._stack.module.position, (f"{self._stack.name}.position",)  # type: ignore[return-value]
        return own, module.position, self._paths(f"{name}.position")  # type: ignore[return-value]

    def _of_position(self, position: PositionKind, spec: Component, paths: tuple[str, ...]) -> Part:
        width = spec.head_width(self._stack.d_model) if isinstance(spec, MultiHeadShape) else None
        details = wording.position_details(position, None, width or getattr(spec, "rope_dim", 0))
        each = [self._stack.counts.of([path]) for path in paths]
        count = self._stack.counts.text(each, paths)
        return Part("position", wording.title(position.kind), tuple(details), paths, sum(each), count)

    def _paths(self, name: str) -> tuple[str, ...]:
        end = f".{name}" if name else ""
        return tuple(f"{self._stack.name}.blocks.{i}{end}" for i in self._layers)

    def _part(
        self, role: Role, title: str, details: Sequence[str], *names: str, without: Sequence[str] = ()
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
    """Whether a position does something of its own in one of the three ways in which positions act."""
    return getattr(type(position), method) is not getattr(Position, method)


def _names(way: ReadWay) -> Iterator[str]:
    for each in way:
        if isinstance(each, Step):
            yield each.name
        else:
            for inner in each.ways:
                yield from _names(inner)
