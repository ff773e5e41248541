"""Examples: the inputs of one call of a model, by name, and batches of them.

Shapes: batch B, tokens T.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

Example = dict[str, Tensor]
"""The inputs of one call, by the names of the model's inputs; the first axis is the batch."""

MASK = "attention_mask"
"""The name of the token mask: 1 for real tokens."""

DECODED = "decoder_input_ids"
"""The name of the decoder's input of an encoder-decoder, where an example has it."""


def of_tokens(ids: Tensor) -> Example:
    """Token ids, B T, without padding."""
    return {"input_ids": ids.to(torch.int64), MASK: torch.ones_like(ids, dtype=torch.int64)}


def joined(examples: Sequence[Example]) -> Example:
    """Examples of one model as one batch: tokens padded on the right, other inputs stacked."""
    names = examples[0].keys() - {MASK, DECODED}
    if MASK not in examples[0]:
        return {name: torch.cat([example[name] for example in examples]) for name in names}
    return {name: padded([example[name] for example in examples]) for name in {*names, MASK}}


def padded(rows: Sequence[Tensor]) -> Tensor:
    """Rows of several lengths, B T each, as one batch, zero-padded on the right."""
    longest = max(row.shape[1] for row in rows)
    return torch.cat([F.pad(row, (0, longest - row.shape[1])) for row in rows])
