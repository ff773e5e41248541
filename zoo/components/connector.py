"""Connectors: from the vectors of images to embeddings among tokens.

Shapes: images M, vectors of an image N, those that remain V, their width E, width of the tokens D, patches P, queries Q.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

import specs.kinds.connector as spec
from specs.kinds import resampler
from zoo.components.activation import activation
from zoo.components.attention_variations import projections
from zoo.components.linear import EmbeddingTable, Linear
from zoo.context import BuildContext
from zoo.core.precision import in_dtype, wide
from zoo.core.sharding import COLUMNS, ROWS, Sharding
from zoo.registry import build_component, builds


class Connector(nn.Module):
    """The base of connectors.  ``context`` is that of the tokens, and ``encoder_width`` the width of the vectors."""

    def __init__(self, spec: spec.ConnectorKind, context: BuildContext) -> None:
        super().__init__()
        assert context.encoder_width is not None
        width = replace(context, d_model=context.encoder_width)
        self.norm = nn.Identity() if spec.norm is None else build_component(spec.norm, width)
        self.pool, self.shuffle, self.keeps_all = spec.pool, spec.shuffle, spec.class_token
        self.joined_width = context.encoder_width * spec.shuffle**2
        joined = replace(context, d_model=self.joined_width)
        self.joined_norm = (
            nn.Identity() if spec.joined_norm is None else build_component(spec.joined_norm, joined)
        )

    def chosen(self, x: Tensor, side: int | None) -> Tensor:
        """joined_norm of the vectors of each square of ``shuffle`` side by side, each norm(mean of a square of ``pool``): M N E ->
        M V joined_width.

        ``side``: the number of patches in a row; None where the patches come square by square.
        """
        if side is None:
            return self.joined_norm(self.norm(x).unflatten(1, (-1, self.shuffle**2)).flatten(2))
        if not self.keeps_all:
            x = x[:, x.shape[1] - side * side :]
        if self.pool > 1:
            x = by_squares(x, side, self.pool).mean(2)  # M P/pool^2 E
        x = self.norm(x)
        if self.shuffle > 1:
            x = by_squares(x, side // self.pool, self.shuffle).flatten(2)
        return self.joined_norm(x)


def deep_connectors(spec: spec.ConnectorKind, context: BuildContext) -> nn.ModuleList:
    """The connectors of the vectors of earlier layers: like the main one, but with norms of their own."""
    deep = spec.deepstack
    if deep is None:
        return nn.ModuleList()
    plain = spec.model_copy(update={"norm": None, "joined_norm": deep.norm, "deepstack": None})
    return nn.ModuleList(build_component(plain, context) for _ in deep.layers)


def by_squares(x: Tensor, side: int, size: int) -> Tensor:
    """The vectors of patches by squares, row after row in both: M (side side) E -> M (side/size)^2 size^2 E."""
    squares, width = side // size, x.shape[2]
    x = x.reshape(x.shape[0], squares, size, squares, size, width)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(x.shape[0], squares * squares, size * size, width)


@builds(spec.LinearConnector)
class LinearConnector(Connector):
    """projection(chosen(x))."""

    def __init__(self, spec: spec.LinearConnector, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.projection = Linear(self.joined_width, context.d_model, bias=spec.bias)

    def forward(self, x: Tensor, side: int | None) -> Tensor:
        """x: M N E, whose last side * side vectors belong to patches -> M V D."""
        return self.projection(self.chosen(x, side))


@builds(spec.MlpConnector)
class MlpConnector(Connector):
    """down(activation(up(chosen(x))))."""

    def __init__(self, spec: spec.MlpConnector, context: BuildContext) -> None:
        super().__init__(spec, context)
        hidden = spec.hidden or context.d_model
        self.up = Linear(self.joined_width, hidden, bias=spec.bias)
        self.activation_name, self.activation = spec.activation, activation(spec.activation)
        self.down = Linear(hidden, context.d_model, bias=spec.bias)

    def sharding(self) -> Sharding:
        """By the hidden width."""
        return Sharding({"up": COLUMNS, "down": ROWS}, {"hidden": self.up.out_features}, last="down")

    def forward(self, x: Tensor, side: int | None) -> Tensor:
        """x: M N E, whose last side * side vectors belong to patches -> M V D."""
        return self.down(self.activation(self.up(self.chosen(x, side))))


class ResamplerLayer(nn.Module):
    """y + f(norm(y)), where y is q and the attention of norm(q) to norm(x) and norm(q).

    Reference: transformers' ``Idefics2PerceiverLayer``.
    """

    def __init__(self, spec: resampler.ResamplerBlock, context: BuildContext) -> None:
        super().__init__()
        self.query_norm = build_component(spec.norm, context)
        self.vector_norm = build_component(spec.norm, context)
        self.attention = projections(spec.attention, context)  # type: ignore[arg-type]
        self.attention.component_kind = spec.attention.kind  # type: ignore[assignment]
        self.feed_forward_norm = build_component(spec.norm, context)
        self.feed_forward = build_component(spec.feed_forward, context)

    def forward(self, q: Tensor, x: Tensor) -> Tensor:
        """q: M Q D, x: M V D -> M Q D."""
        query, vectors = self.query_norm(q), self.vector_norm(x)
        seen = torch.cat((in_dtype(vectors, query.dtype), query), 1)  # M (V + Q) D
        key, value = self.attention.keys_values(seen)
        q = q + self.attention.attend(query, self.attention.queries(query), key, value, None)
        return q + self.feed_forward(self.feed_forward_norm(q))


@builds(resampler.ResamplerConnector)
class ResamplerConnector(Connector):
    """norm(the queries after all layers, each of which attends to projection(chosen(x)))."""

    def __init__(self, spec: resampler.ResamplerConnector, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.projection = build_component(spec.projection, replace(context, input_width=self.joined_width))
        self.queries = EmbeddingTable(spec.queries, context.d_model)
        self.layers = nn.ModuleList(ResamplerLayer(spec.block, context) for _ in range(spec.layers))
        self.final_norm = build_component(spec.block.norm, context)

    def forward(self, x: Tensor, side: int | None) -> Tensor:
        """x: M N E, whose last side * side vectors belong to patches -> M Q D."""
        x = self.projection(self.chosen(x, side))  # M V D
        q = wide(self.queries.weight).expand(x.shape[0], -1, -1)  # M Q D
        for layer in self.layers:
            q = layer(q, x)
        return self.final_norm(q)
