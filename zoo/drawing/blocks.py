"""A block as parts: their wiring comes from its forward, their descriptions from its spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from specs.base import registry
from specs.base.base import Component, DescribedSpec
from specs.base.roles import field_values
from specs.base.words import TIMES, PartContext, PartRole
from specs.kinds.block import BlockParts
from specs.kinds.mixer import AttentionKind
from specs.kinds.position import PositionKind
from specs.model.stack import Stack
from zoo.components.position import Position
from zoo.core.facts import STREAM_METHODS
from zoo.core.roles import kind_name
from zoo.core.units import parameter_text
from zoo.drawing.diagram import AttentionPart, Element, ExpertsPart, Part, Sum, Way
from zoo.drawing.following import Fork, PathStep, way_through
from zoo.drawing.following import Way as ReadWay
from zoo.drawing.parameters import Counts
from zoo.reports.folding import Folded

OTHER_TITLES = {
    "layer_scale": "LayerScale",
    "output_scale": "Scale",
    "beside_embedding": "Concatenate embedding",
    "bottleneck_matrix": "Linear and norm",
    "bottleneck_feed_forward": "Feed-forward branch",
}
"""Titles of parts of blocks that no kind describes."""

FIELDS = {"norm": "norm", "_scale": "layer_scale"}
"""The field of a block that describes the modules whose names have an ending, unless a field has the whole name."""

SIGNS = {"cat": "∥", "mul": TIMES, "sub": "-"}
"""The signs of functions in which branches meet."""

ROLES: dict[str, PartRole] = {"mixer": "mixer", "feed_forward": "feed-forward"}
"""The roles of branches by the slot of their kind."""


@dataclass(frozen=True)
class StackFacts:
    """The sources of descriptions for the parts of a stack's blocks."""

    name: str
    spec: Stack
    folded: Folded
    counts: Counts
    context: PartContext
    position: PositionKind
    position_keys: str
    ways: dict[nn.Module, ReadWay | None] = field(default_factory=dict)
    """The path through each block, which runs of layers share."""

    def way_through(self, block: nn.Module) -> ReadWay | None:
        """The path through a block, read once: see :func:`zoo.drawing.following.way_through`."""
        if block not in self.ways:
            self.ways[block] = way_through(block)
        return self.ways[block]

    @property
    def module(self) -> nn.Module:
        """The stack with equal layers built once."""
        return self.folded.model.get_submodule(self.name)

    def blocks(self, layers: Iterable[int]) -> tuple[str, ...]:
        """The paths of a module in some layers."""
        return tuple(f"{self.name}.blocks.{i}" for i in layers)


class BlockReader:
    """Reads the block of some layers; ``keys``: its path in the spec."""

    def __init__(self, stack: StackFacts, block: BlockParts, keys: str, layers: Sequence[int]) -> None:
        self._stack, self._spec, self._block_keys, self._layers = stack, block, keys, layers
        self._counted: set[str] = set()
        self._context = replace(stack.context, width=block.branch_width(stack.context.width))
        self._block = stack.module.get_submodule(f"blocks.{stack.folded.stacks[stack.name].like[layers[0]]}")

    def way(self) -> Way:
        """The parts of the block, or a single box if its forward cannot be followed, or only by two ways through its attention."""
        read = self._stack.way_through(self._block)
        names = [] if read is None else list(_names(read))
        parts = [self._block.get_submodule(name) for name in names]
        followed = self._weights(self._block.children()) <= self._weights(parts)
        if read is None or names.count("attention") > 1 or not followed:
            return (self._part("other", self._spec.heading, self._spec.details(self._context), ""),)
        return tuple(self._elements(read))

    @staticmethod
    def _weights(modules: Iterable[nn.Module]) -> set[int]:
        """The weights of modules, by identity."""
        return {id(weight) for module in modules for weight in module.parameters()}

    def _elements(self, way: ReadWay) -> Iterator[Element]:
        for step in way:
            if isinstance(step, Fork):
                ways = tuple(tuple(self._elements(inner)) for inner in step.ways)
                yield Sum(ways, self._join(step.join))
            else:
                yield self._step(step)

    def _join(self, step: PathStep | None) -> str | Part:
        """The sign in which branches meet, or the part that reads them."""
        return "+" if step is None else SIGNS.get(step.name) or self._step(step)

    def _step(self, step: PathStep) -> Part:
        if not step.is_module:
            return Part("other", step.name, keys=self._block_keys)
        inner = (
            "." in step.name
        )  # a module in a part, which the block's spec may describe as a part of its own
        if not step.method or (inner and self._spec.part_of(step.name) is not None):
            return self._module(step.name, reads_encoder=step.reads_encoder)
        title = STREAM_METHODS.of(self._block.get_submodule(step.name))[step.method]
        if step.name in self._counted:
            return Part("other", title, keys=self._keys(step.name))
        self._counted.add(step.name)
        return self._part("other", title, [], step.name)

    def _module(self, name: str, *, reads_encoder: bool = False) -> Part:
        spec = self._spec.part_of(name)
        if isinstance(spec, AttentionKind):
            return self._attention(name, spec, reads_encoder)
        role = None if spec is None else _role(spec)
        if spec is None or role is None:
            return self._other(name)
        details = [
            *spec.details(self._spec.part_context(name, self._context)),
            *self._spec.added_details(name),
        ]
        part = self._part(role, spec.heading, details, name)
        return part if spec.routed_experts is None else self._experts(part, name, *spec.routed_experts)

    def _other(self, name: str) -> Part:
        """A norm, or a part that no spec describes."""
        module = self._block.get_submodule(name)
        kind = kind_name(module)
        norm = registry.kinds("norm").get(kind)
        if norm is not None:
            return self._part("norm", norm.spec.kind_title(), [], name)
        return self._part("other", OTHER_TITLES.get(kind, kind.replace("_", " ").capitalize()), [], name)

    def _experts(self, part: Part, name: str, selected: int, experts: int) -> ExpertsPart:
        """A mixture, with the parameters that compute a token."""
        counts = self._stack.counts
        idle = counts.of(self._paths(f"{name}.experts")[:1]) * (experts - selected) // experts
        active = f"{parameter_text(counts.of(self._paths(name)[:1]) - idle)} active"
        return ExpertsPart(**{**vars(part), "details": (*part.details, active)})

    def _attention(self, name: str, spec: AttentionKind, reads_encoder: bool) -> AttentionPart:
        drawn_within: list[Part] = []
        if (norm := spec.inner_norm) is not None:
            names = ["query_norm"] if spec.takes_keys_values else ["query_norm", "key_norm"]
            paths = [f"{name}.{norm_name}" for norm_name in names]
            keys = f"{self._keys(name)}.qk_norm"
            drawn_within.append(
                replace(self._part("norm", norm.norm.heading, [norm.words], *paths), keys=keys)
            )
        scores = None
        if not reads_encoder:
            position, acts, paths = self._position(name, spec)
            own = spec.own_position is not None
            keys = f"{self._keys(name)}.position" if own else self._stack.position_keys
            if acts.overrides("rotate"):
                drawn_within.append(self._of_position(position, spec, [], keys))
            if acts.overrides("bias") or acts.overrides("layer_bias"):
                scores = self._of_position(position, spec, paths, keys)
        context = replace(self._spec.part_context(name, self._context), cross=reads_encoder)
        details = [*spec.details(context), *self._spec.added_details(name)]
        title = spec.heading
        if reads_encoder:
            details, title = [title.removesuffix(" attention"), *details], "Cross-attention"
        without = [path for part in [*drawn_within, scores] if part is not None for path in part.modules]
        for inner, module in self._block.get_submodule(name).named_modules():
            without += self._paths(f"{name}.{inner}") if inner and STREAM_METHODS.of(module) else []
        part = self._part("attention", title, details, name, without=without)
        return AttentionPart(
            **vars(part),
            on_queries_keys=tuple(drawn_within),
            on_scores=scores,
            reads_encoder=reads_encoder,
            reuses_keys_values=spec.takes_keys_values,
        )

    def _position(self, name: str, spec: AttentionKind) -> tuple[PositionKind, Position, list[str]]:
        """The position that acts in an attention, its module, and the module's paths."""
        position, whole = self._stack.position, self._stack.module
        modules: dict[str, Any] = dict(self._block.named_modules(remove_duplicate=False))
        if (inside := modules.get(f"{name}.position")) is None:
            return position, whole.position, [f"{self._stack.name}.position"]  # type: ignore[return-value]
        return spec.own_position or position, inside, self._paths(f"{name}.position")

    def _of_position(
        self, position: PositionKind, spec: AttentionKind, paths: Sequence[str], keys: str
    ) -> Part:
        details = position.details(PartContext(spec.head_width(self._context.width)))
        sizes = [self._stack.counts.of([path]) for path in paths]
        count = self._stack.counts.text(sizes, paths)
        return Part("position", position.heading, tuple(details), tuple(paths), sum(sizes), count, keys)

    def _keys(self, name: str) -> str:
        """The path in the spec of the keys that describe a module of the block."""
        name = name.partition(".")[0]
        candidates = (name, name.removeprefix("first_"), name.removeprefix("cross_"))
        fields = [*candidates, *(field for ending, field in FIELDS.items() if name.endswith(ending))]
        values = field_values(self._spec)
        field = next((field for field in fields if field and values.get(field) is not None), None)
        return self._block_keys if field is None else f"{self._block_keys}.{field}"

    def _paths(self, name: str) -> list[str]:
        return [f"{path}.{name}" if name else path for path in self._stack.blocks(self._layers)]

    def _part(
        self, role: PartRole, title: str, details: Sequence[str], *names: str, without: Sequence[str] = ()
    ) -> Part:
        """A part that stands for modules of the block, in all its layers."""
        by_layer = list(zip(*(self._paths(name) for name in names), strict=True))
        paths = tuple(path for layer in by_layer for path in layer)
        counts = self._stack.counts
        sizes = [
            counts.of(layer, [w for w in without if any(w.startswith(f"{p}.") for p in layer)])
            for layer in by_layer
        ]
        text, keys = counts.text(sizes, paths), self._keys(names[0])
        return Part(role, title, tuple(details), paths, sum(sizes), text, keys)


def _role(spec: DescribedSpec) -> PartRole | None:
    """The role of a part that says so, or by its slot."""
    return ROLES.get(registry.slot_of(spec) or "") if isinstance(spec, Component) else spec.drawn_role


def _names(way: ReadWay) -> Iterator[str]:
    for step in way:
        if isinstance(step, PathStep):
            yield from [step.name] if step.is_module else []
        else:
            for inner in (*step.ways, () if step.join is None else (step.join,)):
                yield from _names(inner)
