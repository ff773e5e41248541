"""Layers that share weights, and the adapters in which they differ."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import specs.kinds.sharing as spec
import zoo.core.sharding as cut
from specs.kinds.block import BlockParts
from zoo.components.linear import Linear


class Adapter(nn.Module):
    """up(down(x)): ... d_in -> ... d_out."""

    def __init__(self, down: Linear, width: int) -> None:
        super().__init__()
        self.down = down
        self.up = Linear(down.out_features, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.up(self.down(x))


class AdaptedLinear(Linear):
    """A linear layer and its adapter, whose results are added: ... d_in -> ... d_out."""

    def __init__(self, layer: nn.Linear, down: Linear) -> None:
        super().__init__(layer.in_features, layer.out_features, bias=layer.bias is not None)
        self.adapter = Adapter(down, layer.out_features)

    def sharding(self) -> cut.Sharding:
        """By outputs, as the layer; every process has the first matrix of the adapter."""
        return cut.Sharding({"": cut.COLUMNS, "adapter.down": cut.SHARED, "adapter.up": cut.HEADS})

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.adapter(x)


def add_adapters(block: Any, adapters: spec.Adapters) -> None:
    """Give adapters to projections of a block's attention and feed-forward."""
    if adapters.attention:
        for name in ("query", "key", "value"):
            _adapt(block.attention, adapters.rank, name)
    if adapters.feed_forward:
        names = [name for name in ("gate", "up") if name in block.feed_forward._modules]
        _adapt(block.feed_forward, adapters.rank, *names)


def _adapt(part: nn.Module, rank: int, *names: str) -> None:
    """Give adapters with the same first matrix to projections of one input."""
    layers: list[Any] = [part.get_submodule(name) for name in names]
    down = Linear(layers[0].in_features, rank, bias=False)
    for name, layer in zip(names, layers, strict=True):
        setattr(part, name, AdaptedLinear(layer, down))


SHARED = ("attention", "feed_forward", "attention_norm", "feed_forward_norm", "attention_output_norm",
          "feed_forward_output_norm")  # fmt: skip
"""The parts of a block whose weights layers share."""


class SharedWeights:
    """The sets of weights that the layers of each block use in turn."""

    def __init__(self) -> None:
        self._layers: dict[int, list[nn.Module]] = {}

    def given(self, block: BlockParts, layer: nn.Module) -> nn.Module:
        """The next layer of a block, with the weights of an earlier one if its set has some; equal blocks are one object."""
        if block.sharing is None:
            return layer
        layers = self._layers.setdefault(id(block), [])
        if len(layers) >= block.sharing.sets:
            _share(layer, layers[len(layers) % block.sharing.sets])
        layers.append(layer)
        return layer


def _share(layer: nn.Module, owner: nn.Module) -> None:
    """Replace the weights of a layer, except adapters, by another layer's."""
    for path, module in layer.named_modules():
        if path.partition(".")[0] not in SHARED or "adapter" in path.split("."):
            continue
        for name, weight in owner.get_submodule(path).named_parameters(recurse=False):
            setattr(module, name, weight)
