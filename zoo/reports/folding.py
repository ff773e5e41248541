"""A model in which equal layers are built once or twice, so that reports need not build and walk them all."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from specs.base import Component, Spec
from specs.model import Model
from specs.registry import kind_of
from specs.stack import LayerRun, Stack
from zoo.builder import ZooModel, assemble


@dataclass(frozen=True)
class FoldedStack:
    """Which layers of a stack were built, and what the others are.

    ``built`` are the indices of those layers in the stack: of each block the first layer, which holds the weights that
    equal attentions share, and the second, which stands for all further ones; of a block with a plugin's component, which
    may make each layer another, all.  ``like`` has for every layer the
    place in ``built`` of the one that it is like, ``owners`` the layer that it is the same as.
    """

    built: list[int]
    like: list[int]
    owners: list[int]

    @property
    def copies(self) -> list[list[int]]:
        """The layers with weights of their own that each built one stands for."""
        layers: list[list[int]] = [[] for _ in self.built]
        for layer, owner in enumerate(self.owners):
            if owner == layer:
                layers[self.like[layer]].append(layer)
        return layers


@dataclass(frozen=True)
class Folded:
    """A spec with the model that was built of it, on the meta device.

    Each stack ends with one layer more than are counted, which the norm after the last layer is built like.
    """

    spec: Model
    model: ZooModel
    stacks: dict[str, FoldedStack]

    @classmethod
    def of(cls, spec: Model) -> Folded:
        """A spec folded.  Raises as :func:`zoo.builder.assemble` does."""
        stacks: dict[str, FoldedStack] = {name: _folded(stack) for name, stack in spec.stacks()}
        shorter: dict[str, Stack] = {
            name: stack.model_copy(update={"layers": _runs(stack, stacks[name].built)})
            for name, stack in spec.stacks()
        }
        return cls(spec, assemble(spec.model_copy(update=shorter)), stacks)

    def copies(self, path: str) -> int:
        """How many modules, or weights by name, one of the built model stands for."""
        layer = _layer(path)
        return len(self._layers[layer]) if layer in self._layers else 1

    def originals(self, path: str) -> list[str]:
        """The paths in the spec's model of what a module or weight of the built one stands for."""
        layer = _layer(path)
        stack = layer.rpartition(".")[0]
        if layer not in self._layers:
            return [path]
        return [f"{stack}.{each}{path[len(layer) :]}" for each in self._layers[layer]]

    @cached_property
    def _layers(self) -> dict[str, list[int]]:
        return {
            f"{name}.blocks.{place}": layers
            for name, stack in self.stacks.items()
            for place, layers in enumerate([*stack.copies, []])
        }


def _layer(path: str) -> str:
    """The path of the layer that a module is in; for one in none, its own or that of a module around it."""
    return ".".join(path.split(".")[:3])


def _folded(stack: Stack) -> FoldedStack:
    blocks, owners = stack.layer_blocks(), stack.owners()
    most = {
        id(block): len(blocks) if _has_plugin(block) else 2
        for block in {id(block): block for block in blocks}.values()
    }
    chosen = defaultdict[int, list[int]](list)
    for layer, (block, owner) in enumerate(zip(blocks, owners, strict=True)):
        if owner == layer and len(chosen[id(block)]) < most[id(block)]:
            chosen[id(block)].append(layer)
    built = sorted(layer for layers in chosen.values() for layer in layers)
    places = {layer: place for place, layer in enumerate(built)}
    like = [places.get(owner, places[chosen[id(blocks[owner])][-1]]) for owner in owners]
    return FoldedStack(built, like, owners)


def _has_plugin(spec: Any) -> bool:
    """Whether a plugin's component is among the parts of a spec."""
    if not isinstance(spec, Spec):
        return False
    is_plugin = isinstance(spec, Component) and kind_of(spec).implementation is not None
    return is_plugin or any(_has_plugin(getattr(spec, name)) for name in type(spec).model_fields)


def _runs(stack: Stack, built: list[int]) -> tuple[LayerRun, ...]:
    uses = stack.block_names()
    return tuple(LayerRun(use=uses[layer]) for layer in [*built, len(uses) - 1])
