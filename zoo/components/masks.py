"""Heads that give masks of an image.

Shapes: images B, vectors of an image T, queries Q, rows h and columns w of patches, width D.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

import specs.kinds.masks as spec
from zoo.components.activation import activation
from zoo.components.convolution import Convolution2d
from zoo.components.linear import Linear
from zoo.components.pooling import TokenSequence
from zoo.context import StackContext
from zoo.core.precision import in_dtype, wide
from zoo.registry import build_component, builds


class Doubling(nn.Module):
    """norm(depthwise(activation(matrix(x) + bias))), where the matrix makes four vectors of each: B h w D -> B 2h 2w D."""

    component_kind = "doubling"

    def __init__(self, spec: spec.Masks, context: StackContext) -> None:
        super().__init__()
        width = context.d_model
        self.matrix = Linear(width, 4 * width, bias=False)
        self.bias = nn.Parameter(torch.empty(width))
        self.activation = activation(spec.activation)
        self.depthwise = Convolution2d(width, width, 3, padding=1, groups=width, bias=False)
        self.norm = build_component(spec.norm, context)

    def forward(self, x: Tensor) -> Tensor:
        four = self.matrix(x).unflatten(-1, (2, 2, -1))  # B h w 2 2 D
        x = four.permute(0, 1, 3, 2, 4, 5).flatten(3, 4).flatten(1, 2)  # B 2h 2w D
        x = self.activation(x + in_dtype(self.bias, x.dtype))
        normed: Tensor = self.norm(self.depthwise(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1))
        return normed


class QueryVector(nn.Module):
    """third(activation(second(activation(first(x))))): B Q D -> B Q D."""

    component_kind = "query_vector"

    def __init__(self, spec: spec.Masks, context: StackContext) -> None:
        super().__init__()
        self.first, self.second, self.third = (Linear(context.d_model, context.d_model) for _ in range(3))
        self.activation = activation(spec.activation)

    def forward(self, x: Tensor) -> Tensor:
        vectors: Tensor = self.third(self.activation(self.second(self.activation(self.first(x)))))
        return vectors


@builds(spec.Masks)
class Masks(nn.Module):
    """class_queries_logits: B Q (labels + 1), and masks_queries_logits: B Q h' w'."""

    per_token: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, spec: spec.Masks, context: StackContext) -> None:
        super().__init__()
        assert context.patch_grid is not None
        assert context.context_length is not None
        self.rows, self.columns, _ = context.patch_grid
        self.end, self.start = context.context_length, context.context_length - self.rows * self.columns
        self.classes = Linear(context.d_model, spec.labels + 1)
        self.vector = QueryVector(spec, context)
        self.doublings = nn.ModuleList(Doubling(spec, context) for _ in range(spec.doublings))

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        """x: B (T + Q) D, the queries after the vectors of the image."""
        queries, image = x[:, self.end :], x[:, self.start : self.end].unflatten(1, (self.rows, self.columns))
        for doubling in self.doublings:
            image = doubling(image)  # B h' w' D
        vectors = self.vector(queries)
        masks = wide(vectors @ in_dtype(image, vectors.dtype).flatten(1, 2).transpose(1, 2))  # B Q (h' w')
        sizes = (self.rows << len(self.doublings), self.columns << len(self.doublings))
        return {
            "class_queries_logits": self.classes(queries),
            "masks_queries_logits": masks.unflatten(-1, sizes),
        }
