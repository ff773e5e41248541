"""The inputs of embeddings beside tokens: tasks, and boxes on a page."""

from __future__ import annotations

import torch
from torch import Tensor

from specs.kinds.embedding import EmbeddingKind


def token_inputs(embedding: EmbeddingKind, codes: Tensor) -> dict[str, Tensor]:
    """The inputs beside tokens, each a function of a code from 0 on for each token: codes B T -> B T, or boxes B T 4."""
    return {
        name: _boxes(codes, 1000).to(torch.float32) / 1000
        if is_real
        else _boxes(codes, below)
        if is_box
        else codes % below
        for name, below, is_box, is_real in embedding.token_inputs
    }


def _boxes(codes: Tensor, below: int) -> Tensor:
    """Boxes of all sizes, whose right and bottom edges are not before the left and the top."""
    left, top = codes * 7 % below, codes * 11 % below
    return torch.stack((left, top, left + codes * 3 % (below - left), top + codes * 5 % (below - top)), -1)
