"""Rotary frequencies that checkpoints store, and the scale of token dropout."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from specs.base.errors import SpecError, UserError
from specs.language.load import load
from specs.model.model import Model
from tests.zoo.filled import random_model
from tests.zoo.tiny import BLOCK, bert
from zoo.builder import assemble

STORED = {"kind": "rope", "frequencies": "stored", "theta": 100.0}
IDS = torch.tensor([[3, 5, 7, 11, 5, 2]])


def drawn(spec: Model, dtype: torch.dtype = torch.float32) -> Any:
    return random_model(spec, dtype=dtype).eval()


@torch.no_grad()
def test_drawn_weights_hold_the_frequencies_of_theta() -> None:
    stored, computed = drawn(bert(position=STORED)), drawn(bert(position={"kind": "rope", "theta": 100.0}))
    assert stored.encoder.position.stored.tolist() == pytest.approx([1.0, 0.1])
    assert torch.equal(stored(IDS)["last_hidden_state"], computed(IDS)["last_hidden_state"])
    stored.encoder.position.stored.mul_(1.5)
    assert not torch.equal(stored(IDS)["last_hidden_state"], computed(IDS)["last_hidden_state"])


def test_frequencies_stay_in_float32() -> None:
    model = drawn(bert(position=STORED), torch.bfloat16)
    assert model.encoder.position.stored.dtype == torch.float32
    assert model.encoder.position.stored.tolist() == pytest.approx([1.0, 0.1], rel=1e-6)


def test_scaled_frequencies_are_computed() -> None:
    with pytest.raises(SpecError, match=r"frequencies: must be computed with scaling or sections"):
        load("esm2-8m", ["position.scaling={kind: linear, factor: 2}"])


def test_heads_of_several_widths_have_computed_frequencies() -> None:
    wide = {**BLOCK, "attention": {"kind": "multi_head", "heads": 1}}
    encoder = {"layers": [{"use": "wide"}, {}], "block": BLOCK, "blocks": {"wide": wide}}
    spec = bert(position=STORED, encoder=encoder)
    with pytest.raises(UserError, match=r"frequencies: must be computed where heads have several widths"):
        assemble(spec)


@torch.no_grad()
def test_token_dropout_counts_real_tokens() -> None:
    spec = bert(embedding={"token_dropout": {"token": 5, "rate": 0.25}}, position={"kind": "none"})
    embedding: Any = drawn(spec).embedding
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]])  # one mask token of four
    found = embedding(IDS, torch.arange(6)[None], None, mask)[0]
    table = embedding.token.weight[IDS[0]]
    factor = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0]) * 0.75 * 4 / 3
    torch.testing.assert_close(found, table * factor[:, None])
    every = embedding(torch.full((1, 3), 5), torch.arange(3)[None])
    assert not every.any()
