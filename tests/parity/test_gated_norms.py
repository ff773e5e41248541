"""Gated norms of Mamba-2 mixers against transformers: the gate before the norm or after it, and groups of channels."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from transformers.models.falcon_h1.modeling_falcon_h1 import FalconH1RMSNormGated

from zoo.components.gated_norm import Gate, GatedRMSNorm


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("gate", ["before", "after"])
def test_a_gated_norm(gate: str, groups: int) -> None:
    torch.manual_seed(0)
    reference = FalconH1RMSNormGated(12, eps=1e-3, n_groups=groups, norm_before_gate=gate == "after")
    norm = GatedRMSNorm(12, 1e-3, groups=groups, gates_first=gate == "before")
    with torch.no_grad():
        reference.weight.normal_(1.0, 0.1)
        norm.weight.copy_(reference.weight)
    x, z = torch.randn(2, 5, 12), torch.randn(2, 5, 12)
    torch.testing.assert_close(norm(x, z), reference(x, z), rtol=1e-6, atol=1e-6)


def test_a_gate_alone() -> None:
    x, z = torch.randn(2, 5, 12), torch.randn(2, 5, 12)
    assert torch.equal(Gate()(x, z), x * F.silu(z))
