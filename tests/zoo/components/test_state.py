"""The state that a decoder carries from call to call, as its caller sees it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from zoo import build, load

IDS = torch.tensor([[1, 2, 3]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda past: past[:1], r"must hold the state of each of the 4 layers; it has 1 entries"),
        (
            lambda past: [(key, value[..., :8]) for key, value in past],
            r"past_key_values\[0\] must hold the state of layer 0: key B x 4 x length x 16, "
            r"value B x 4 x length x 16; it has 1 x 4 x 3 x 16, 1 x 4 x 3 x 8\. Pass what an earlier call",
        ),
        (
            lambda past: [*past[:3], ()],
            r"past_key_values\[3\] must hold the state of layer 3: .*; it has no tensors\.",
        ),
    ],
)
def test_a_state_of_another_shape_is_refused(change, message):
    model = build(load("tiny-gpt"), weights="random")
    past = model(IDS).present_key_values
    with pytest.raises(ValueError, match=message):
        model(IDS[:, :1], past_key_values=change(past))


def test_a_process_of_tensor_parallelism_holds_some_of_the_heads():
    model: Any = build(load("tiny-gpt"), weights="random")
    key, _ = model.decoder.states[0]
    held = {heads: key.holds(torch.empty(1, heads, 3, 16)) for heads in range(6)}
    assert held == {0: False, 1: True, 2: True, 3: False, 4: True, 5: False}


def test_a_mixer_that_counts_tokens_needs_a_mask_where_no_state_counts_them():
    changes = [
        "position={kind: none}",
        "decoder.block.attention=null",
        "decoder.block.mixer={kind: rg_lru, width: 32, heads: 4}",
    ]
    model = build(load("tiny-gpt", changes), weights="random").eval()
    ids = torch.arange(1, 19).reshape(2, 9)
    past = model(ids[:, :4]).present_key_values
    with pytest.raises(ValueError, match="does not tell how many tokens came before: give attention_mask"):
        model(ids[:, 4:], None, past)
    rest = model(ids[:, 4:], torch.ones_like(ids), past).logits
    torch.testing.assert_close(rest, model(ids).logits[:, 4:], rtol=1e-5, atol=1e-5)
