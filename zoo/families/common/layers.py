"""The layers of a stack, which may differ in several respects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, pairwise

from specs.base.suggest import suggestion
from specs.kinds.block import BlockParts
from specs.kinds.position import NoPosition
from specs.model.stack import Stack
from zoo.families.common.config import Config
from zoo.families.common.fields import Depth, Int, Positive
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError, read, write


def pattern(names: Sequence[str | None]) -> int | list[Data]:
    """The ``layers`` of a stack whose layers use these blocks (None: the stack's own), as short as they go.

    ``[a, b, a, b]`` becomes one group of two runs, ``[a, b, c, b, c]`` a run and a group; ``[None, None]`` the count 2.
    """
    if all(name is None for name in names):
        return len(names)
    repeats = _repeats(names)
    changes = list(accumulate((a != b for a, b in pairwise(names)), initial=0))

    def runs(start: int, end: int) -> int:
        return 1 + changes[end - 1] - changes[start] if start < end else 0

    best, fewest = _runs(names), runs(0, len(names))
    for (start, length), times in sorted(repeats.items()):
        end = start + times * length
        lines = runs(0, start) + runs(start, start + length) + runs(end, len(names))
        if lines < fewest:
            group: Data = {"pattern": _runs(names[start : start + length]), "repeat": times}
            best, fewest = [*_runs(names[:start]), group, *_runs(names[end:])], lines
    return best


def _repeats(names: Sequence[str | None]) -> dict[tuple[int, int], int]:
    """The repeated runs of layers: the first layer and the length of a run -> the number of repetitions."""
    runs = {}
    for length in range(2, min(len(names) // 2, _LONGEST) + 1):
        alike = 0  # layers from here on that are as the ones so many later
        for start in reversed(range(len(names) - length)):
            alike = alike + 1 if names[start] == names[start + length] else 0
            if start < _LONGEST and alike >= length:
                runs[start, length] = 1 + alike // length
    return runs


_LONGEST = 32
"""Layers before a group, or in a pattern, that are tried."""


def _runs(names: Sequence[str | None]) -> list[Data]:
    runs = []
    for name, group in groupby(names):
        count = len(list(group))
        run: Data = {} if name is None else {"use": name}
        runs.append({**run, "repeat": count} if count > 1 or not run else run)
    return runs


def layered(block: Data, variants: Mapping[str, Data], names: Sequence[str | None]) -> Data:
    """The ``layers``, ``block`` and ``blocks`` of a stack whose layers are this block or, by name, variants of it.

    A variant says what differs.  One that all layers are becomes the block itself.
    """
    used = list(dict.fromkeys(names))
    if len(used) == 1:
        return {
            "layers": len(names),
            "block": block if used[0] is None else merge(block, variants[used[0]]),
        }
    blocks = {name: variants[name] for name in used if name is not None}
    return {"layers": pattern(names), "block": block, "blocks": blocks}


def merge(base: Data, above: Data) -> Data:
    """Plain data with other data laid over it; a mapping that gives its kind is whole."""
    inner = {
        key: merge(base[key], value)
        for key, value in above.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict) and "kind" not in value
    }
    return {**base, **above, **inner}


class LayerVariation:
    """A respect in which layers differ: where it holds, ``differs`` is laid over the block."""

    name: str
    differs: Template = None

    def read(self, config: Config, depth: int) -> Sequence[bool]:
        """Whether it holds, layer by layer."""
        raise NotImplementedError

    def holds(self, block: BlockParts, index: int) -> bool:
        """Whether it holds in a layer of a model."""
        raise NotImplementedError

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        """The fields that state where it holds."""
        raise NotImplementedError


class Layers(Field):
    """A stack: how many layers, their block, in which respects they vary, and ``more`` keys of the stack."""

    def __init__(
        self, depth: Field, block: Template, varies: Sequence[LayerVariation] = (), **more: Template
    ) -> None:
        self.depth, self.block, self.varies, self.more = depth, block, varies, more

    def read(self, config: Config) -> Data:
        depth = self.depth.read(config)
        base = read(self.block, config)
        where = [variation.read(config, depth) for variation in self.varies]
        differs = [read(variation.differs, config) for variation in self.varies]
        names: list[str | None] = []
        variants: dict[str, Data] = {}
        for holding in zip(*where, strict=True) if where else [()] * depth:
            name = "_".join(
                variation.name for variation, holds in zip(self.varies, holding, strict=True) if holds
            )
            names.append(name or None)
            if name and name not in variants:
                laid: Data = {}
                for part, holds in zip(differs, holding, strict=True):
                    laid = merge(laid, part) if holds else laid
                variants[name] = laid
        layers = layered(base, variants, names) if depth > 0 else {"layers": depth, "block": base}
        return {**read(self.more, config), **layers}

    def standing_for(self, stack: Stack) -> BlockParts:
        """The first block without variations, or else the first block.  Blocks that differ otherwise show up in reading back."""
        blocks = stack.layer_blocks()
        plain = (
            block
            for i, block in enumerate(blocks)
            if not any(variation.holds(block, i) for variation in self.varies)
        )
        return next(plain, blocks[0])

    def write(self, value: Stack | None, context: FieldContext) -> Data:
        if value is None:
            raise UnfitError(f"architecture {context.model.architecture}")
        blocks = value.layer_blocks()
        context = FieldContext(context.model, value, self.standing_for(value), context.key)
        data = {**self.depth.write(value.depth, context), **write(self.more, value, context)}
        for variation in self.varies:
            where = [variation.holds(block, i) for i, block in enumerate(blocks)]
            data |= variation.write(where, context)
            if any(where):
                varied = blocks[where.index(True)]
                data |= write(variation.differs, varied, replace(context, block=varied))
        for key, part in self.block.items():
            block = self._showing(key, blocks)
            if block is not None:
                data |= write({key: part}, block, replace(context, block=block, key="block"))
        return data

    def _showing(self, key: str, blocks: Sequence[BlockParts]) -> BlockParts | None:
        """The first block whose part of this key is unchanged, or else not replaced.  None where every layer replaces it."""

        def first_without(varies: Sequence[LayerVariation]) -> BlockParts | None:
            plain = (
                block
                for i, block in enumerate(blocks)
                if not any(variation.holds(block, i) for variation in varies)
            )
            return next(plain, None)

        changing = [variation for variation in self.varies if key in variation.differs]
        replacing = [
            variation
            for variation in changing
            if variation.differs[key] is None or "kind" in variation.differs[key]
        ]
        return first_without(changing) or first_without(replacing)


FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"
"""Kinds of layers in ``layer_types``; the state of the last does not grow."""

_OLD_WORDS = {"mamba": LINEAR, "attention": FULL}
"""Words of earlier configs, which transformers reads as today's in the config of every family."""


class FixedLayers(LayerVariation):
    """Layers that the reference fixes: ``where`` says which, from a layer and the depth, and ``shown`` whether a block is one.

    ``unfit`` is what other layers would be, for the message of :class:`UnfitError`.
    """

    def __init__(
        self,
        name: str,
        differs: Template,
        where: Callable[[int, int], bool],
        shown: Callable[[BlockParts], bool],
        unfit: str,
    ) -> None:
        self.name, self.differs, self.where, self.shown, self.unfit = name, differs, where, shown, unfit

    def read(self, config: Config, depth: int) -> list[bool]:
        return [self.where(layer, depth) for layer in range(depth)]

    def holds(self, block: BlockParts, index: int) -> bool:
        return self.shown(block)

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        if [*where] != [self.where(layer, len(where)) for layer in range(len(where))]:
            raise UnfitError(self.unfit)
        return {}


WhereFunction = Callable[[Config, int], list[bool]]
"""Says of each layer whether something holds, from the config and the number of layers."""


class Windows(LayerVariation):
    """Layers with a window, as listed in ``layer_types``; ``default`` gives them for a config without that list.

    ``written`` gives further fields that state them for other readers.
    """

    def __init__(
        self,
        name: str,
        window: Template,
        default: WhereFunction,
        missing: tuple[str, ...] = ("sliding_window", f"must be a number: there are layers of {SLIDING}"),
        written: Callable[[Sequence[bool]], Data] = lambda where: {},
        **attention: Template,
    ) -> None:
        self.name, self.window, self.default, self.missing = name, window, default, missing
        self.written = written
        self.differs = {"attention": {"window": window, **attention}}

    def read(self, config: Config, depth: int) -> list[bool]:
        windowed = read_layer_types(config, self.default(config, depth))
        if any(windowed) and self.window.read(config) is None:
            config.refuse(*self.missing)
        return windowed

    def holds(self, block: BlockParts, index: int) -> bool:
        return block.sliding_window is not None

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        return {"layer_types": [SLIDING if windowed else FULL for windowed in where], **self.written(where)}


def read_layer_types(config: Config, default: list[bool]) -> list[bool]:
    """Which layers have a window."""
    kinds = read_kinds(config, "layer_types", len(default), (FULL, SLIDING))
    return default if kinds is None else [kind == SLIDING for kind in kinds]


def read_kinds(config: Config, name: str, depth: int, words: Sequence[str]) -> list[str] | None:
    """The words for all layers, of earlier configs as today's; None where the config has no list."""
    entries = config.list(name)
    if entries is None:
        return None
    if len(entries) != depth:
        config.refuse_entries(name, depth)
    kinds = [_OLD_WORDS.get(word, word) for word in map(str, entries)]
    for kind in kinds:
        if kind not in words:
            config.refuse(name, "must have supported kinds only", suggestion(kind, words))
    return kinds


class SingleWindow(Int):
    """The window of all layers, of a reference with one mask for all; null for none."""

    def __init__(self, depth: Depth, *, default: int | None) -> None:
        super().__init__("sliding_window", default=default, null=True)
        self.depth = depth

    def read(self, config: Config) -> int | None:
        window: int | None = super().read(config)
        every = [window is not None] * self.depth.read(config)
        if read_layer_types(config, every) != every:
            kind = FULL if window is None else SLIDING
            config.refuse(
                "layer_types", f"must be {kind} for every layer: the reference has one mask for all"
            )
        return window


def all_but_every_fourth(config: Config, depth: int) -> list[bool]:
    """Windows in all layers except every n-th, by default the fourth: the usual ones of configs without ``layer_types``."""
    name = "sliding_window_pattern"
    if config.has("layer_types"):
        config.ignore(name)  # which may be text, such as LLLG
        return [False] * depth
    return all_but_every(Positive(name, default=4))(config, depth)


def all_but_every(count: int | Positive, first: int | None = None) -> WhereFunction:
    """All layers except every n-th, by default the last of each n; ``first`` is the first of those, and ``count`` n, or its field."""

    def where(config: Config, depth: int) -> list[bool]:
        every: int = read(count, config)
        start = every - 1 if first is None else first
        return [layer % every != start % every for layer in range(depth)]

    return where


def no_layer(config: Config, depth: int) -> list[bool]:
    """No layer."""
    return [False] * depth


def read_numbers(config: Config, name: str, default: Sequence[int] | None = None) -> list[int] | None:
    """The layers that a list names by number, from 0."""
    numbers: list[int] | None = config.list(name, default=default)
    if numbers is not None and not all(type(layer) is int for layer in numbers):
        config.refuse(name, "must be a list of layers by number, from 0")
    return numbers


def read_flags(config: Config, name: str, depth: int) -> list[bool] | None:
    """The layers to which a list gives 1; None for a config without it."""
    flags = config.list(name)
    if flags is None:
        return None
    if len(flags) != depth or not all(type(flag) is int and flag in (0, 1) for flag in flags):
        config.refuse(name, f"must be 0 or 1 for each of the {depth} layers")
    return [flag == 1 for flag in flags]


class UnrotatedLayers(LayerVariation):
    """The layers that do not rotate queries and keys."""

    name = "unrotated"
    differs = {"attention": {"position": {"kind": "none"}}}

    def holds(self, block: BlockParts, index: int) -> bool:
        return isinstance(block.own_position, NoPosition)


class NoRopeLayers(UnrotatedLayers):
    """The layers that do not rotate, which ``no_rope_layers`` says by 0, in spite of its name: by default every fourth."""

    def __init__(self, name: str, differs: Template = None) -> None:
        self.name, self.differs = name, differs or UnrotatedLayers.differs

    @staticmethod
    def rotated(config: Config, depth: int) -> list[bool]:
        """Which layers rotate queries and keys."""
        flags = config.list("no_rope_layers")
        if not flags:
            return all_but_every(Positive("no_rope_layer_interval", default=4))(config, depth)
        config.int("no_rope_layer_interval")
        if len(flags) < depth or not all(type(flag) is int and flag in (0, 1) for flag in flags):
            config.refuse("no_rope_layers", f"must be 0 or 1 for each of the {depth} layers")
        return [flag == 1 for flag in flags[:depth]]

    def read(self, config: Config, depth: int) -> list[bool]:
        return [not rotated for rotated in self.rotated(config, depth)]

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        return {"no_rope_layers": [int(not unrotated) for unrotated in where]}


class GlobalLayers(UnrotatedLayers):
    """The layers without a window, which do not rotate queries and keys."""

    name = "global"

    def __init__(self, windows: Windows) -> None:
        self.windows = windows

    def read(self, config: Config, depth: int) -> list[bool]:
        return [not windowed for windowed in self.windows.read(config, depth)]

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        return {}
