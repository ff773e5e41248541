"""The layers of a stack, which may differ in several respects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from specs.kinds.block import BlockParts
from specs.model.stack import Stack
from zoo.families.common.config import Config
from zoo.families.common.layer_runs import layered, merge
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError, read, write


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
