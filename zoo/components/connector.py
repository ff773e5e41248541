"""Connectors: from the vectors of images to embeddings among tokens.

Shapes: images M, vectors of an image N, those that remain V, their width E, width of the tokens D, patches P.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

import specs.connector as spec
from zoo.components.activation import activation
from zoo.components.linear import Linear
from zoo.context import BuildContext
from zoo.registry import build_component, builds
from zoo.sharding import COLUMNS, ROWS, Sharding


class Connector(nn.Module):
    """The base of connectors.  ``context`` is that of the tokens, and ``encoder_width`` the width of the vectors."""

    def __init__(self, spec: spec.ConnectorKind, context: BuildContext) -> None:
        super().__init__()
        assert context.encoder_width is not None
        width = replace(context, d_model=context.encoder_width)
        self.norm = nn.Identity() if spec.norm is None else build_component(spec.norm, width)
        self.joined_norm: nn.Module | None = None
        self.pool, self.shuffle, self.keeps_all = spec.pool, spec.shuffle, spec.class_token
        self.joined_width = context.encoder_width * spec.shuffle**2

    def chosen(self, x: Tensor, side: int | None) -> Tensor:
        """norm(mean of each square of ``pool``), with the vectors of each square of ``shuffle`` side by side: M N E ->
        M V joined_width.

        ``side``: the number of patches in a row; None where the patches come square by square.
        """
        if side is None:
            joined = self.norm(x).unflatten(1, (-1, self.shuffle**2)).flatten(2)
            return joined if self.joined_norm is None else self.joined_norm(joined)
        if not self.keeps_all:
            x = x[:, x.shape[1] - side * side :]
        if self.pool > 1:
            x = by_squares(x, side, self.pool).mean(2)  # M P/pool^2 E
        x = self.norm(x)
        if self.shuffle > 1:
            x = by_squares(x, side // self.pool, self.shuffle).flatten(2)
        return x


def deep_connectors(spec: spec.ConnectorKind, context: BuildContext) -> nn.ModuleList:
    """The connectors of the vectors of earlier layers: like the main one, but with a norm of joined vectors."""
    deep = spec.deepstack
    if deep is None:
        return nn.ModuleList()
    plain = spec.model_copy(update={"norm": None, "deepstack": None})
    found = nn.ModuleList()
    for _ in deep.layers:
        connector: Connector = build_component(plain, context)  # type: ignore[assignment]
        if deep.norm is not None:
            connector.joined_norm = build_component(
                deep.norm, replace(context, d_model=connector.joined_width)
            )
        found.append(connector)
    return found


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
        """x: M N E, whose last side * side vectors are those of the patches -> M V D."""
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
        """x: M N E, whose last side * side vectors are those of the patches -> M V D."""
        return self.down(self.activation(self.up(self.chosen(x, side))))
