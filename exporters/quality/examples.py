"""Examples: the inputs of one call of a model, by name, and batches of them.

Shapes: batch B, tokens T.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.core.graph_names import GRID

Example = dict[str, Tensor]
"""The inputs of one call, by the names of the model's inputs; the first axis is the batch."""

MASK = "attention_mask"
"""The name of the token mask: 1 for real tokens."""

DECODED = "decoder_input_ids"
"""The name of an encoder-decoder's decoder input, if an example has it."""


def of_tokens(ids: Tensor) -> Example:
    """Token ids, B T, without padding."""
    return {"input_ids": ids.to(torch.int64), MASK: torch.ones_like(ids, dtype=torch.int64)}


def joined(examples: Sequence[Example], padding: int = 0) -> Example:
    """Join examples of one model into a batch: tokens and their mask are padded on the right, other inputs stacked."""
    names = examples[0].keys() - {DECODED}

    def batch(name: str) -> Tensor:
        rows = [example[name] for example in examples]
        whole = rows[0].is_floating_point() or name == GRID
        return torch.cat(rows) if whole else padded(rows, 0 if name == MASK else padding)

    return {name: batch(name) for name in names}


def padded(rows: Sequence[Tensor], padding: int = 0) -> Tensor:
    """Join rows of several lengths, B T each, into one batch, padded on the right."""
    longest = max(row.shape[1] for row in rows)
    return torch.cat([F.pad(row, (0, longest - row.shape[1]), value=padding) for row in rows])
