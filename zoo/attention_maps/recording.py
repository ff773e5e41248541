"""Records the attention weights of a model while it runs.

Shapes: batch B, heads H, queries T, keys S.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zoo import functional
from zoo.attention_maps.choice import StackName
from zoo.attention_maps.following import FollowedAttentions
from zoo.builder import ZooModel


@dataclass(frozen=True)
class AttentionCall:
    """One call of a layer's attention.

    weights: B H T S, or B H T (S + 1) with the sink last; seen: B T S or B T (S + 1), which keys a query may see.
    """

    stack: StackName
    layer: int
    weights: Tensor
    seen: Tensor
    sink: bool


class Recording(FollowedAttentions):
    """A context in which ``tell`` receives each attention call, in order.

    The weights are computed from the arguments of :func:`zoo.functional.attention` by the function that it uses itself.
    Attentions that do not call it are not seen.
    """

    def __init__(self, model: ZooModel, tell: Callable[[AttentionCall], None]) -> None:
        super().__init__(model)
        self._tell = tell

    def attends(self, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
        self._tell(self._call(*args, **options))
        return functional.attention(*args, **options)

    def _call(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        *,
        dropout: float = 0.0,
        sinks: Tensor | None = None,
        **options: Any,
    ) -> AttentionCall:
        weights = functional.attention_weights(query, key, bias, sinks=sinks, **options)
        batch, _, queries, _ = weights.shape
        seen = torch.ones((batch, queries, key.shape[2]), dtype=torch.bool, device=weights.device)
        if bias is not None:  # what is forbidden is so for all heads
            seen &= (bias > functional.forbidden(bias.dtype))[:, 0]
        if sinks is not None:
            seen = torch.cat((seen, seen.new_ones((batch, queries, 1))), -1)
        return AttentionCall(self.stack, self.layer, weights, seen, sinks is not None)
