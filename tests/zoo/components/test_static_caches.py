"""Caches that do not grow: the same results as with caches that do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from specs.model.model import Model
from tests.zoo.tiny import BLOCK, gpt2, t5
from zoo.builder import assemble
from zoo.components.mixer import State

PLACES = 9
WINDOWED = {"layers": 2, "block": {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "window": 3}}}
CHUNKED = {"layers": 2, "block": {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "chunk": 3}}}
GROWING = {"kind": "none", "query_scaling": {"beta": 0.7, "length": 2, "offset": 1}}
BESIDE = {"layers": 2, "block": {**BLOCK, "mixer": {"kind": "short_convolution"}}}


def filled(spec: Model) -> Any:
    model: Any = assemble(spec).to_empty(device="cpu")
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def room(model: Any, rows: int) -> list[State]:
    """Caches full of numbers that mean nothing, and states of constant size at their start."""
    return [
        tuple(torch.full(each.shape(rows, PLACES), 3.0 if each.grows else 0.0) for each in state)
        for state in model.decoder.states
    ]


def places(*lengths: int) -> Tensor:
    """Rows from place 0 on, padded with -1."""
    at = torch.arange(max(lengths))
    return torch.stack([torch.where(at < length, at, -1) for length in lengths])


@pytest.mark.parametrize(
    "spec",
    [
        gpt2(),
        gpt2(position={"kind": "rope"}),
        gpt2(position={"kind": "alibi"}),
        gpt2(position={"kind": "relative_bias", "max_distance": 5, "buckets": 8}),
        gpt2(decoder=WINDOWED),
        gpt2(decoder=CHUNKED, position=GROWING),
        gpt2(decoder=BESIDE),
    ],
    ids=["learned", "rope", "alibi", "relative bias", "window", "chunks, growing queries", "a mixer beside attention"],
)  # fmt: skip
def test_a_ragged_prompt_and_steps_are_the_full_pass_of_each_row(spec: Model) -> None:
    model, ids, lengths = filled(spec), torch.randint(20, (2, 9)), (5, 2)
    with torch.inference_mode():
        outputs = model(ids[:, :5], None, room(model, 2), position_ids=places(*lengths))
        for step in range(3):
            expected = [
                model(row[None, : length + step])["logits"] for row, length in zip(ids, lengths, strict=True)
            ]
            for row, length in enumerate(lengths):
                last = length - 1 if step == 0 else 0
                torch.testing.assert_close(outputs["logits"][row, last], expected[row][0, -1])
            at = torch.tensor([[length + step] for length in lengths])
            outputs = model(ids.gather(1, at), None, outputs.present_key_values, position_ids=at)
    assert outputs.present_key_values[0][0].shape[2] == PLACES


def test_the_last_token_is_the_last_real_one() -> None:
    model, ids = filled(gpt2()), torch.randint(20, (2, 4))
    with torch.inference_mode():
        every = model(ids, None, room(model, 2), position_ids=places(4, 2))["logits"]
        last = model(ids, None, room(model, 2), position_ids=places(4, 2), last_only=True)["logits"]
    torch.testing.assert_close(last[:, 0], every[[0, 1], [3, 1]])


def test_the_decoder_of_an_encoder_decoder() -> None:
    model, source, ids = filled(t5()), torch.randint(20, (2, 6)), torch.randint(20, (2, 5))
    with torch.inference_mode():
        encoded = model.encode(source).present_key_values
        expected = model.decode(ids, encoded)["logits"]
        first = model.decode(ids[:, :3], encoded, None, room(model, 2), position_ids=places(3, 3))
        rest = model.decode(
            ids[:, 3:], encoded, None, first.present_key_values, position_ids=torch.tensor([[3, 4], [3, 4]])
        )
    torch.testing.assert_close(torch.cat((first["logits"], rest["logits"]), 1), expected)
