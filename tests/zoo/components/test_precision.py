"""Models in half: what is computed in float32 all the same, and that nothing changes in float32."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from specs.model.model import Model
from tests.zoo.filled import random_model
from tests.zoo.tiny import BLOCK, bert, gpt2, t5, vit, whisper
from zoo.builder import ZooModel, assemble
from zoo.components.block import PreNorm
from zoo.components.router import Router

HALVES = [torch.float16, torch.bfloat16]


def filled(spec: Model, dtype: torch.dtype) -> ZooModel:
    return random_model(spec, dtype=dtype)


def outputs(model: Any, spec: Model) -> Any:
    """What a model gives for a few tokens, or an image, or a sound."""
    ids = torch.arange(6).repeat(2, 1)
    first = spec.encoder or spec.decoder
    assert first is not None
    embedding = spec.embedding_of(first)
    if embedding.takes_tokens:
        inputs = ids
    else:
        shape = embedding.input_shape(spec.context_length_of(first))
        inputs = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        return model(inputs, ids) if spec.architecture == "encoder-decoder" else model(inputs)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("make", [bert, gpt2, t5, vit, whisper])
def test_outputs_are_float32_and_near_and_caches_are_half(make: Any, dtype: torch.dtype) -> None:
    spec = make()
    got, expected = outputs(filled(spec, dtype), spec), outputs(filled(spec, torch.float32), spec)
    for name, value in got.items():
        assert value.dtype == torch.float32
        allowed = (0.01 if dtype == torch.float16 else 0.08) * max(1.0, float(expected[name].abs().max()))
        torch.testing.assert_close(value, expected[name], atol=allowed, rtol=0.0)
    assert {tensor.dtype for pair in got.present_key_values for tensor in pair} <= {dtype}


def test_the_stream_of_pre_norm_blocks_is_float32() -> None:
    spec, seen = gpt2(), []
    model = filled(spec, torch.float16)
    for module in model.modules():
        if isinstance(module, PreNorm):
            module.register_forward_hook(lambda block, args, result: seen.append(result[0].dtype))
    outputs(model, spec)
    assert seen == [torch.float32, torch.float32]


def test_norms_give_half_of_statistics_in_float32() -> None:
    """Squares of a stream of 1000 are too large for float16."""
    spec = t5()
    norm: Any = filled(spec, torch.float16).get_submodule("encoder.final_norm")
    x = torch.full((1, 1, 8), 1000.0) * torch.tensor([1.0, -1.0] * 4)
    result: Tensor = norm(x)
    assert result.dtype == torch.float16
    torch.testing.assert_close(result.float(), x / 1000)


def test_routers_choose_in_float32() -> None:
    expert = {"kind": "gated", "hidden": 6, "activation": "silu", "bias": False}
    block = gpt2().model_dump()["decoder"]["block"]
    block["feed_forward"] = {"kind": "mixture", "experts": 4, "top_k": 2, "expert": expert}
    spec, seen = gpt2(decoder={"layers": 1, "block": block}), []
    model = filled(spec, torch.bfloat16)
    for module in model.modules():
        if isinstance(module, Router):
            module.register_forward_hook(
                lambda router, args, logits: seen.append(router.choose(logits)[0].dtype)
            )
    assert torch.isfinite(outputs(model, spec).logits).all()
    assert seen == [torch.float32]


def test_the_largest_negative_bias_leaves_no_nan_in_rows_without_tokens() -> None:
    model = filled(bert(), torch.float16)
    result = model(torch.ones(2, 4, dtype=torch.int64), torch.tensor([[1, 1, 0, 0], [0, 0, 0, 0]]))
    assert all(bool(torch.isfinite(value).all()) for value in result.values())


def test_double_stays_double() -> None:
    spec = t5()
    model: nn.Module = filled(spec, torch.float64)
    assert outputs(model, spec).logits.dtype == torch.float64


@pytest.mark.parametrize("dtype", HALVES)
def test_fixed_numbers_of_positions_are_those_of_float32(dtype: torch.dtype) -> None:
    sinusoidal = gpt2(position={"kind": "sinusoidal", "spacing": "tensor2tensor"})
    layers = {"layers": 1, "block": {**BLOCK, "attention": {"kind": "multi_head", "heads": 12}}}
    alibi = gpt2(d_model=24, position={"kind": "alibi", "precision": "bfloat16"}, decoder=layers)
    ours: Any
    theirs: Any
    for spec, numbers in (
        (sinusoidal, lambda model: model.embedding.position.frequencies),
        (alibi, lambda model: model.decoder.position.slopes),
    ):
        ours, theirs = assemble(spec, dtype), assemble(spec)
        assert numbers(ours) == numbers(theirs)
