"""Positions.  Each acts in one of three ways: on the embedding, on queries and keys, or on the scores."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import specs.kinds.position as spec
from zoo.components.linear import EmbeddingTable
from zoo.context import BuildContext
from zoo.registry import builds


@builds(spec.NoPosition)
class Position(nn.Module):
    """The base, which does none of the three, and at most scales queries.

    ``name`` identifies a position within its stack.
    """

    name = "of the stack"
    parameter_role = "positions"

    def __init__(self, spec: spec.PositionKind, context: BuildContext) -> None:
        super().__init__()
        self.query_scaling = spec.query_growth

    @classmethod
    def overrides(cls, method: str) -> bool:
        """Whether positions of this class act in a way, by the name of its method."""
        return getattr(cls, method) is not getattr(Position, method)

    def share(self, first: Position) -> None:
        """Take from the first layer what layers with a position of their own have in common."""

    def prepare(self, width: int) -> None:
        """Prepare, when the model is built, to rotate queries and keys of a width."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add to the embedding.  x: B T D, positions: B T -> B T D."""
        return x

    def embed_real(self, x: Tensor, positions: Tensor, real: Tensor) -> Tensor:
        """Add to an embedding whose vectors of padding are 0, as they are where ``real`` is: B T 1; otherwise as for ``embed``."""
        return self.embed(x, positions)

    def embed_tokens(self, x: Tensor, positions: Tensor, mask: Tensor | None) -> Tensor:
        """Add to an embedding of tokens, with padding anywhere: mask: B T, or None for none; otherwise as for ``embed``."""
        return self.embed(x, positions)

    def rotate(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        """Rotate queries or keys.  x: B H T K with K = width, positions: B T, or along several axes A B T -> B H T K."""
        return x

    def rotate_input(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        """Rotate what queries and keys are projected from.  x: B T D, in pieces of ``width``, positions: B T -> B T D."""
        return x

    def rotate_queries(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        """Rotate and scale queries; arguments as for ``rotate``."""
        return self.scale_queries(self.rotate(x, positions, width), positions)

    def scale_queries(self, x: Tensor, positions: Tensor) -> Tensor:
        """Scale rotated queries.  x: B H T K, positions: B T -> B H T K."""
        scaling = self.query_scaling
        if scaling is None:
            return x
        counted = positions + scaling.offset if scaling.offset else positions
        periods = (counted // scaling.length).to(torch.float32)  # B T
        factors = 1.0 + scaling.beta * torch.log(1.0 + periods)
        return x * factors[:, None, :, None].to(x.dtype)

    def bias(self, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor | None:
        """Add to the scores.

        queries and keys: their positions, (B or 1) T and (B or 1) S; padding repeats a neighbour's position
        -> (B or 1) H (T or 1) S in the dtype of ``like``, or None.
        """
        return None

    def distances(self, queries: Tensor, keys: Tensor, like: Tensor) -> Any:
        """The input of ``layer_bias`` that all layers share, or None; arguments as for ``bias``."""
        return None

    def layer_bias(
        self, bias: Tensor | None, distances: Any, attention: Any, x: Tensor, query: Tensor, key: Tensor
    ) -> Tensor | None:
        """The bias of the scores of one attention, from the bias of all layers: both broadcast to B H T S, or None.

        x: B T D, the input of the attention, query: B H T K, key: B G S K.
        """
        return bias


@builds(spec.Learned)
class Learned(Position):
    """A trained table with one row per position."""

    def __init__(self, spec: spec.Learned, context: BuildContext) -> None:
        super().__init__(spec, context)
        assert context.context_length is not None
        self.offset = spec.offset
        self.table = EmbeddingTable(context.context_length + spec.offset, context.d_model)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + self.table(positions + self.offset)
