"""From token ids to the residual stream."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

import specs.model as spec
from specs.position import NoPosition, PositionKind
from zoo.components.linear import Linear, Table
from zoo.components.position import Position
from zoo.context import BuildContext
from zoo.registry import build_component


class Embedding(nn.Module):
    """projection(norm(token * scale + token type + position)), each part where the spec has it.

    ``token`` may be another embedding's table, which is then shared.
    """

    def __init__(
        self, spec: spec.Model, position: PositionKind, context: BuildContext, token: Table | None = None
    ) -> None:
        super().__init__()
        parts, width = spec.embedding, spec.embedding_width
        context = replace(context, d_model=width)
        self.token = token or Table(spec.vocab_size, width)
        self.token_type = Table(parts.token_types, width) if parts.token_types else None
        self.position: Position = build_component(  # type: ignore[assignment]
            position if position.embedded else NoPosition(), context
        )
        self.scale = spec.d_model**0.5 if parts.scale == "sqrt_d_model" else parts.scale
        self.norm = nn.Identity() if parts.norm is None else build_component(parts.norm, context)
        self.dropout = nn.Dropout(parts.dropout)
        self.projection = nn.Identity() if width == spec.d_model else Linear(width, spec.d_model)

    def forward(self, input_ids: Tensor, positions: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """input_ids, positions and token_type_ids (default: all 0): B T -> B T D."""
        x = self.token(input_ids)  # B T W
        if self.scale is not None:
            x = x * self.scale
        if self.token_type is not None:
            x = x + (self.token_type.weight[0] if token_type_ids is None else self.token_type(token_type_ids))
        x = self.position.embed(x, positions)
        return self.projection(self.dropout(self.norm(x)))  # B T D
