"""Text that a decoder writes: what it was trained on, as far as it remembers it, where no tokenizer is at hand."""

from __future__ import annotations

from typing import Any

import torch

from exporters.quality.inputs import Representative
from specs.model import Model

ROWS = 12
"""Sequences that are written."""

LENGTH = 128
"""Tokens of each, where the context is not shorter."""

SEED = 0


def generated(spec: Model, model: Any, start: object) -> Representative:
    """Sequences sampled from a decoder at temperature 1 after its ``start`` token, or after a random one where there is
    none.  A third of them calibrates."""
    length = min(LENGTH, spec.context_length_of(spec.last_stack) or LENGTH)
    generator = torch.Generator().manual_seed(SEED)
    assert spec.vocab_size is not None
    ids = torch.randint(spec.vocab_size, (ROWS, 1), generator=generator)
    if isinstance(start, int) and start < spec.vocab_size:
        ids = torch.full_like(ids, start)
    past, new = None, ids
    with torch.inference_mode():
        while ids.shape[1] < length:
            outputs = model(new, torch.ones_like(ids), past)
            past = outputs.present_key_values
            new = torch.multinomial(outputs.logits[:, -1].softmax(-1), 1, generator=generator)
            ids = torch.cat([ids, new], 1)
    rows = [{"input_ids": row[None], "attention_mask": torch.ones_like(row)[None]} for row in ids]
    judged = rows[ROWS // 3 :]
    return Representative(
        f"text that the model writes, seed {SEED}, {len(judged)} x {length} tokens", rows[: ROWS // 3], judged
    )
