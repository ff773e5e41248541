"""Inputs that models generate themselves: samples of their training data, and the outputs of encoder-decoders.

Shapes: batch B, tokens T.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

from exporters.quality.examples import of_tokens
from exporters.quality.parts import Representative
from exporters.verification.cases import Batch
from specs.model.model import Model

ROWS = 12
"""The number of sequences generated."""

LENGTH = 128
"""Tokens of each, unless the context is shorter."""

SEED = 0


def generated(spec: Model, model: Any, start: object) -> Representative:
    """Sequences sampled from a decoder at temperature 1 after its ``start`` token, or after a random one.

    A third of them is for calibration.
    """
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
    rows = [of_tokens(row[None]) for row in ids]
    judged = rows[ROWS // 3 :]
    return Representative(
        f"text that the model writes, seed {SEED}, {len(judged)} x {length} tokens", rows[: ROWS // 3], judged
    )


def greedy(model: Any, encoder: Batch, start: int, ends: Collection[int], most: int) -> list[list[int]]:
    """The greedy output of an encoder-decoder for each row, with at most ``most`` tokens, up to an end token."""
    with torch.inference_mode():
        encoded = model.encode(encoder.inputs, encoder.mask, encoder.types).present_key_values
        rows = len(encoder.inputs)
        found: list[list[int]] = [[] for _ in range(rows)]
        new, past, over = torch.full((rows, 1), start), None, [False] * rows
        for _ in range(most):
            outputs = model.decode(new, encoded, encoder.mask, past)
            new, past = outputs.logits[:, -1:].argmax(-1), outputs.present_key_values
            for row, token in enumerate(new[:, 0].tolist()):
                if not over[row]:
                    found[row].append(token)
                    over[row] = token in ends
            if all(over):
                break
    return found
