"""LayerScale against the same blocks with their factors in other weights, and its values at the start."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from specs.model.model import Model
from tests.zoo.filled import random_model
from tests.zoo.tiny import BLOCK, bert

BEFORE_THE_SUM = {
    "pre_norm": ("attention.output", "feed_forward.down"),
    "post_norm": ("attention.output", "feed_forward.down"),
    "parallel": ("attention.output", "feed_forward.down"),
    "normed_residual": ("attention.output", "feed_forward.down"),
    "reordered_norm": ("attention_norm", "feed_forward_norm"),
    "sandwich": ("attention_output_norm", "feed_forward_output_norm"),
}
"""What each kind of block applies last before it adds a branch to the residual stream."""


def drawn(spec: Model) -> Any:
    return random_model(spec).double().eval()


def scaled(kind: str) -> Model:
    return bert(encoder={"layers": 2, "block": {**BLOCK, "kind": kind, "layer_scale": 0.5}})


@pytest.mark.parametrize("kind", BEFORE_THE_SUM)
def test_factors_act_before_the_sum(kind: str) -> None:
    ids = torch.randint(0, 9, (2, 5), generator=torch.Generator().manual_seed(0))
    model = drawn(scaled(kind))
    factors = torch.linspace(-1.0, 2.0, 8, dtype=torch.float64)
    with torch.no_grad():
        before = model(ids)["last_hidden_state"]
        for block in model.encoder.blocks:
            block.attention_scale.weight.copy_(factors)
            block.feed_forward_scale.weight.copy_(factors.flip(0))
        found = model(ids)["last_hidden_state"]
        for block in model.encoder.blocks:
            for name, of in zip(BEFORE_THE_SUM[kind], (factors, factors.flip(0)), strict=True):
                last: nn.Module = block.get_submodule(name)
                for weight in last.parameters():
                    weight.mul_(of[:, None] if weight.dim() == 2 else of)
            block.attention_scale.weight.fill_(1.0)
            block.feed_forward_scale.weight.fill_(1.0)
        expected = model(ids)["last_hidden_state"]
    assert (found - before).abs().max() > 1e-6
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_every_branch_has_factors_of_its_own_that_begin_with_the_value() -> None:
    named = {
        name: parameter
        for name, parameter in drawn(scaled("pre_norm")).named_parameters()
        if "_scale" in name
    }
    assert list(named) == [
        f"encoder.blocks.{layer}.{branch}_scale.weight"
        for layer in range(2)
        for branch in ("attention", "feed_forward")
    ]
    for parameter in named.values():
        assert parameter.requires_grad
        assert (parameter == 0.5).all()
