"""Embeddings: from the inputs of a model to its residual stream.

Shapes: batch B, vectors T, width D, width of the token table W.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import replace

import torch
from torch import Tensor, nn

import specs.kinds.embedding as spec
from specs.kinds.position import NoPosition
from zoo import functional
from zoo.components.boxes import Boxes, Layout
from zoo.components.linear import EmbeddingTable, Linear
from zoo.components.position import Position
from zoo.context import StackContext
from zoo.core.precision import wide
from zoo.core.sharding import VOCABULARY, Sharding
from zoo.registry import build_component, builds


class Embedding(nn.Module):
    """The base of embeddings.  ``token`` is the token table, if the inputs are tokens.

    ``forward`` takes the inputs, the positions of the embedded vectors, token types, and the caller's mask.
    """

    token: EmbeddingTable | None
    parameter_role = "embedding"

    def __init__(self, spec: spec.EmbeddingKind, context: StackContext) -> None:
        super().__init__()
        self.token = None
        self.position: Position = build_component(  # type: ignore[assignment]
            context.position_kind if context.position_kind.embedded else NoPosition(),
            replace(
                context,
                d_model=spec.position_width(context.d_model),
                context_length=spec.position_count(context.context_length),
            ),
        )

    def mask_and_positions(self, inputs: Tensor, mask: Tensor | None) -> tuple[Tensor | None, Tensor]:
        """The mask of the embedded vectors, B T with 1 for real ones or None for all, and their positions.

        ``mask`` is the caller's, or None; positions are B T, or 1 T if all rows are alike.
        """
        raise NotImplementedError


@builds(spec.Tokens)
class Tokens(Embedding):
    """projection(norm(token * scale + token type + task + box + position)), each part optional; token dropout is a further factor of token.
    A layout or the corners of boxes follow in the same vectors.

    The token table may be shared with another embedding: ``context.token``.
    """

    token: EmbeddingTable

    def __init__(self, spec: spec.Tokens, context: StackContext) -> None:
        super().__init__(spec, context)
        assert context.vocab_size is not None
        width, inner = spec.table_width(context.d_model), spec.position_width(context.d_model)
        self.token = context.token or EmbeddingTable(context.vocab_size, width)  # type: ignore[assignment]
        self.token_type = EmbeddingTable(spec.token_types, inner) if spec.token_types else None
        self.task_type = EmbeddingTable(spec.tasks, inner) if spec.tasks else None
        self.boxes = Boxes(spec.boxes, inner) if spec.boxes else None
        self.layout = None if spec.layout is None else Layout(spec.layout, context, spec.dropout)
        self.corners = spec.corners
        self.reads_boxes = any(part is not None for part in (spec.boxes, spec.layout, spec.corners))
        self.scale = context.d_model**0.5 if spec.scale == "sqrt_d_model" else spec.scale
        self.token_dropout = spec.token_dropout
        self.norm = (
            nn.Identity()
            if spec.norm is None
            else build_component(spec.norm, replace(context, d_model=inner))
        )
        self.dropout = nn.Dropout(spec.dropout)
        self.projection: nn.Module = nn.Identity()
        if spec.projection is not None or width != context.d_model:
            bias = spec.projection is None or spec.projection.bias
            self.projection = Linear(3 * width if spec.trigrams else width, context.d_model, bias=bias)
        self.trigrams = spec.trigrams
        self.projects_first = spec.projection is not None and spec.projection.place == "first"

    def sharding(self) -> Sharding:
        """By the vocabulary."""
        return Sharding({"token": VOCABULARY}, {"vocab_size": self.token.num_embeddings})

    def mask_and_positions(self, inputs: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        mask = torch.ones_like(inputs) if mask is None else mask
        return mask, functional.token_positions(mask, inputs.shape[1])

    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor,
        token_type_ids: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        task_type_ids: Tensor | None = None,
        bbox: Tensor | None = None,
    ) -> Tensor:
        """input_ids, positions, and token_type_ids and task_type_ids (default: all 0): B T, bbox (default: all 0): B T 4
        -> B T D, with a layout of width W beside it B T (D + W)."""
        x = wide(self.token(input_ids))  # B T W
        if self.scale is not None:
            x = x * self.scale
        if self.token_dropout is not None:
            x = x * self._unmasked(input_ids, mask)[..., None]
        if self.trigrams:
            x = beside_neighbours(x, positions, mask)  # B T 3W
        if self.projects_first:
            x = self.projection(x)  # B T D
        if self.token_type is not None:
            x = x + (self.token_type.weight[0] if token_type_ids is None else self.token_type(token_type_ids))
        if self.task_type is not None:
            x = x + (self.task_type.weight[0] if task_type_ids is None else self.task_type(task_type_ids))
        if bbox is None and self.reads_boxes:
            bbox = torch.zeros_like(input_ids)[..., None].expand(-1, -1, 4)
        if self.boxes is not None:
            x = functools.reduce(operator.add, self.boxes(bbox), x)
        x = self.dropout(self.norm(self.position.embed_tokens(x, positions, mask)))
        x = x if self.projects_first else self.projection(x)  # B T D
        if self.corners is not None:
            corners = [wide(bbox[..., edge]) for edge in (0, 1, 2, 1, 2, 3, 0, 3)]  # type: ignore[index]
            return torch.cat((wide(x), self.corners * torch.stack(corners, -1)), -1)
        return x if self.layout is None else torch.cat((x, self.layout(bbox, positions, mask)), -1)

    def _unmasked(self, input_ids: Tensor, mask: Tensor | None) -> Tensor:
        """0 for mask tokens, and (1 - rate) / (share of other tokens) for others: input_ids and the caller's mask, B T -> B T, float32.

        Shares are of real tokens; where all are masked, all vectors are 0.
        """
        assert self.token_dropout is not None
        real = torch.ones_like(input_ids) if mask is None else mask
        others = (input_ids != self.token_dropout.token).to(torch.float32)  # B T
        real = real.to(torch.float32)
        count = (others * real).sum(-1, keepdim=True).clamp(min=1.0)  # B 1
        return others * ((1 - self.token_dropout.rate) * real.sum(-1, keepdim=True) / count)


def beside_neighbours(x: Tensor, positions: Tensor, mask: Tensor | None) -> Tensor:
    """The vectors of the token after, of the token, and of the one before side by side, with zeros where there is none: B T W,
    positions and mask B T -> B T 3W.  Padding is no neighbour, wherever it is."""
    distances = positions[:, None] - positions[:, :, None]  # B T T, of each token to the others
    parts = []
    for distance in (1, -1):
        is_there = (distances == distance).to(x.dtype)
        if mask is not None:
            is_there = is_there * mask[:, None].to(x.dtype)
        parts.append(is_there @ x)
    after, before = parts
    return torch.cat((after, x, before), -1)


class DenseEmbedding(Embedding):
    """An embedding of images or audio, which are never padded, as T vectors."""

    length: int

    def mask_and_positions(self, inputs: Tensor, mask: Tensor | None) -> tuple[None, Tensor]:
        """Raises :class:`TypeError` for a mask."""
        if mask is not None:
            raise TypeError("images and audio are never padded: this model takes no attention_mask")
        return None, functional.positions_from(0, self.length, inputs)[None]  # 1 T
