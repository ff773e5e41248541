"""Mixers with gated delta rules, and their norm, against the modules of transformers, and the gate of attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from transformers.models.kimi_linear.modeling_kimi_linear import KimiLinearRMSNormGated
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextRMSNormGated

from specs.kinds.attention import GroupedQuery
from specs.kinds.delta import GatedDeltaNet, KimiDeltaAttention
from tests.zoo.components.contexts import mixer_context
from zoo import functional
from zoo.components.delta import EPS
from zoo.components.gated_norm import GatedRMSNorm
from zoo.context import LayerContext
from zoo.registry import build_component

WIDTH = 12
CONTEXT = LayerContext(WIDTH, None, causal=True, cross=False)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def initialized(module: Any) -> Any:
    for place, parameter in enumerate(module.parameters()):
        nn.init.normal_(parameter, 0.0, 0.5, generator=torch.Generator().manual_seed(place))
    return module


@pytest.mark.parametrize(
    ("reference", "activation"),
    [(Qwen3NextRMSNormGated, F.silu), (KimiLinearRMSNormGated, torch.sigmoid)],
    ids=["silu", "sigmoid"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gated_norm_is_that_of_the_reference(reference: Any, activation: Any, dtype: torch.dtype) -> None:
    x, gate, weight = drawn(2, 3, WIDTH), drawn(2, 3, WIDTH, seed=1), drawn(WIDTH, seed=2)
    ours, theirs = GatedRMSNorm(WIDTH, 1e-3, activation), reference(WIDTH, eps=1e-3)
    for norm in (ours, theirs):
        norm.weight.data = weight
        norm.to(dtype)
    found, expected = (norm(x.to(dtype), gate.to(dtype)) for norm in (ours, theirs))
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(found.float(), expected.float(), atol=4 * unit, rtol=4 * unit)


def test_unit_lengths_are_computed_in_float32() -> None:
    x = drawn(2, 3, WIDTH).half()
    found = functional.unit_length(x, EPS)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.norm(dim=-1), torch.ones(2, 3), atol=1e-5, rtol=0)
    assert float(functional.unit_length(x * 0, EPS).abs().max()) == 0.0


@pytest.mark.parametrize(
    "spec",
    [
        GatedDeltaNet(heads=4, key_heads=2, key_width=3, value_width=5),
        KimiDeltaAttention(heads=3, head_dim=4),
    ],
    ids=lambda spec: spec.kind,
)
def test_a_mixer_declares_the_state_that_it_returns(spec: Any) -> None:
    mixer = initialized(build_component(spec, CONTEXT))
    context = mixer_context()
    y, state = mixer(drawn(2, 7, WIDTH), context, None)
    assert y.shape == (2, 7, WIDTH)
    assert [tuple(each.shape) for each in state] == [each.shape(2, 7) for each in mixer.state]
    assert [each.name for each in mixer.state] == ["conv", "recurrent"]
    further, _ = mixer(drawn(2, 3, WIDTH, seed=1), context, state)
    whole, _ = mixer(torch.cat((drawn(2, 7, WIDTH), drawn(2, 3, WIDTH, seed=1)), 1), context, None)
    torch.testing.assert_close(torch.cat((y, further), 1), whole, atol=1e-5, rtol=1e-5)


def test_a_gate_scales_the_output_of_attention() -> None:
    data = {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "output_gate": True, "bias": False}
    spec = GroupedQuery.model_validate(data)
    attention: Any = initialized(build_component(spec, CONTEXT))
    query, key, value = drawn(2, 4, 3, 3), drawn(2, 2, 3, 3, seed=1), drawn(2, 2, 3, 3, seed=2)
    x = drawn(2, 3, WIDTH, seed=3)
    gate, attention.gate = attention.gate, None
    output, attention.output = attention.output, nn.Identity()
    plain = attention.attend(x, query, key, value, None)
    attention.gate, attention.output = gate, output
    expected = output(plain * torch.sigmoid(gate(x)))
    torch.testing.assert_close(attention.attend(x, query, key, value, None), expected)
