"""Heads with norm(activation(dense(x))) before their output layer."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

import specs.kinds.transforming_head as spec
from specs.kinds.vocabulary_heads import MaskedScores
from zoo.components.activation import activation
from zoo.components.linear import Linear
from zoo.context import StackContext
from zoo.registry import build_component


class TransformingHead(nn.Module):
    """A head with norm(activation(dense(x))), each part optional: ... D -> ... W, with W the ``width`` (default: D)."""

    def __init__(
        self,
        spec: spec.TransformingHead | MaskedScores,
        context: StackContext,
        width: int | None = None,
    ) -> None:
        super().__init__()
        width = width or context.d_model
        self.dense = (
            nn.Identity() if spec.activation is None else Linear(context.d_model, width, bias=spec.dense_bias)
        )
        self.activation = activation(spec.activation or "identity")
        self.norm = (
            nn.Identity()
            if spec.norm is None
            else build_component(spec.norm, replace(context, d_model=width))
        )

    def transform(self, x: Tensor) -> Tensor:
        return self.norm(self.activation(self.dense(x)))
