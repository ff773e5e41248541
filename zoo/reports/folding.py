"""A model with equal layers built once or twice, so that reports need not walk them all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, TypeVar

from specs.model.model import Model
from specs.model.stack import LayerRun, Stack
from zoo.builder import ZooModel, assemble
from zoo.components.layer_sum import WeightedLayerSum
from zoo.core.remembering import has_plugin

Result = TypeVar("Result")


@dataclass(frozen=True)
class FoldedStack:
    """The built layers of a stack, and how the others map to them.

    ``built``: the indices of the built layers. For each block these are the first layer, which holds the weights that equal
    attentions share, and the second, which represents all later ones; for a block that shares weights, the first two of each
    set; for a block with a plugin's component, which may vary by layer, all layers. ``like``: for every layer, the index in
    ``built`` of its equivalent. ``owners``: for every layer, the layer whose weights it uses.
    """

    built: list[int]
    like: list[int]
    owners: list[int]

    @property
    def copies(self) -> list[list[int]]:
        """For each built layer, the layers with own weights that it represents."""
        layers: list[list[int]] = [[] for _ in self.built]
        for layer, owner in enumerate(self.owners):
            if owner == layer:
                layers[self.like[layer]].append(layer)
        return layers


@dataclass(frozen=True)
class Folded:
    """A spec with its folded model, on the meta device.

    Each stack ends with the block of the last layer, so that the final norm is built as in the full model: with an extra layer, which is
    not counted, if need be. Sums over layers equal the full model's.
    """

    spec: Model
    model: ZooModel
    stacks: dict[str, FoldedStack]
    readings: dict[Callable[..., Any], Any] = field(default_factory=dict, repr=False, compare=False)
    """The results of functions that read the model once: see :func:`once`."""

    @classmethod
    def of(cls, spec: Model) -> Folded:
        """Fold a spec. Raises the errors of :func:`zoo.builder.assemble`."""
        stacks: dict[str, FoldedStack] = {name: _folded(stack) for name, stack in spec.stacks()}
        shorter: dict[str, Stack] = {
            name: stack.model_copy(update={"layers": _runs(stack, stacks[name].built)})
            for name, stack in spec.stacks()
        }
        model = assemble(spec.model_copy(update=shorter))
        for name, stack in spec.stacks():
            if stack.weighted_layer_sum:
                model.get_submodule(name).layer_sum = WeightedLayerSum(stack.depth).to("meta")
        return cls(spec, model, stacks)

    def copies(self, path: str) -> int:
        """The number of modules or weights in the full model that a path in the folded model represents."""
        layer = layer_path(path)
        return len(self._layers[layer]) if layer in self._layers else 1

    def originals(self, path: str) -> list[str]:
        """The paths in the full model that a path in the folded model represents."""
        layer = layer_path(path)
        stack = layer.rpartition(".")[0]
        if layer not in self._layers:
            return [path]
        return [f"{stack}.{layer_index}{path[len(layer) :]}" for layer_index in self._layers[layer]]

    @cached_property
    def _layers(self) -> dict[str, list[int]]:
        return {
            f"{name}.blocks.{index}": layers
            for name, stack in self.stacks.items()
            for index, layers in enumerate([*stack.copies, []])
        }


def once(function: Callable[[Folded], Result]) -> Callable[[Folded], Result]:
    """Let a folded model keep the function's result, which every report on it shares."""

    @wraps(function)
    def call(folded: Folded) -> Result:
        if function not in folded.readings:
            folded.readings[function] = function(folded)
        result: Result = folded.readings[function]
        return result

    return call


def layer_path(path: str) -> str:
    """The path of the layer around a module; outside layers, its own path or a parent's."""
    return ".".join(path.split(".")[:3])


def _folded(stack: Stack) -> FoldedStack:
    blocks, owners = stack.layer_blocks(), stack.owners()
    uses = defaultdict[int, list[int]](list)
    for layer, (block, owner) in enumerate(zip(blocks, owners, strict=True)):
        if owner == layer:
            uses[id(block)].append(layer)
    standing = {}  # for each layer with own weights, the built layer that represents it
    for block in {id(block): block for block in blocks}.values():
        layers = uses[id(block)]
        period = 1 if block.sharing is None else block.sharing.sets
        most = len(layers) if has_plugin(block) else 2 * period
        for use, layer in enumerate(layers):
            standing[layer] = layers[use if use < most else most - period + (use - most) % period]
    built = sorted(set(standing.values()))
    indices = {layer: index for index, layer in enumerate(built)}
    return FoldedStack(built, [indices[standing[owner]] for owner in owners], owners)


def _runs(stack: Stack, built: list[int]) -> tuple[LayerRun, ...]:
    uses = stack.block_names()
    extra = [] if uses[built[-1]] == uses[-1] else [len(uses) - 1]
    return tuple(LayerRun(use=uses[layer]) for layer in [*built, *extra])
