"""What the self-attentions of a decoder are given while it runs in PyTorch, layer by layer, and what they use instead.

Shapes: batch B, heads H, key-value heads G, query tokens T, key tokens S, head width K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from zoo.attending.following import FollowedAttentions
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


def attention_paths(model: ZooModel) -> list[str]:
    """The path of each layer's self-attention; layers that share a block have the same."""
    decoder: nn.Module = model.decoder  # type: ignore[assignment]
    paths = {module: path for path, module in model.named_modules()}
    return [paths[block.attention] for block in decoder.blocks]  # type: ignore[union-attr]


Replace = Callable[[CachedAttention], tuple[Tensor, Tensor]]
"""Gives the keys and values that an attention uses in the place of its own."""


class CachedAttentions(FollowedAttentions):
    """A context in which ``replace`` gives the keys and values of a decoder's self-attentions, in the order of the layers.

    What the model returns as its cache stays as it is.
    """

    def __init__(self, model: ZooModel, replace: Replace) -> None:
        super().__init__(model)
        self._replace, self._paths = replace, attention_paths(model)

    def attends(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
        if self.stack != "decoder":
            return args
        query, key, value, bias = args
        call = CachedAttention(self._paths[self.layer], self.layer, query, key, value, bias, options)
        return query, *self._replace(call), bias
