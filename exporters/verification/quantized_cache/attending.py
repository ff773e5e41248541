"""Hooks that observe or replace the keys and values of a decoder's self-attention in PyTorch, layer by layer.

Shapes: batch B, heads H, key-value heads G, query tokens T, key tokens S, head width K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from zoo import functional
from zoo.attention_maps.following import FollowedAttentions
from zoo.builder import ZooModel


@dataclass(frozen=True)
class CachedAttention:
    """One call of a layer's self-attention: the path of its module, the layer, and the arguments of the call.

    query: B H T K, key and value: B G S K, bias: broadcast to B H T S, or None.
    """

    path: str
    layer: int
    query: Tensor
    key: Tensor
    value: Tensor
    bias: Tensor | None
    options: dict[str, Any]


def attention_paths(model: ZooModel) -> dict[int, str]:
    """The path of the self-attention of each layer that has one; layers that share a block share it."""
    decoder: nn.Module = model.decoder  # type: ignore[assignment]
    paths = {module: path for path, module in model.named_modules()}
    return {layer: paths[attention] for layer, attention in decoder.attentions.items()}  # type: ignore[union-attr, operator]


Replace = Callable[[CachedAttention], tuple[Tensor, Tensor]]
"""Returns the keys and values that an attention uses instead of its own."""


class CachedAttentions(FollowedAttentions):
    """A context in which ``replace`` returns the keys and values of a decoder's self-attentions, in the order of the
    layers.

    The cache that the model returns is unchanged.
    """

    def __init__(self, model: ZooModel, replace: Replace) -> None:
        super().__init__(model)
        self._replace, self._paths = replace, attention_paths(model)

    def attends(self, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
        query, key, value, bias = args
        if self.stack == "decoder":
            call = CachedAttention(self._paths[self.layer], self.layer, query, key, value, bias, options)
            key, value = self._replace(call)
        return functional.attention(query, key, value, bias, **options)
