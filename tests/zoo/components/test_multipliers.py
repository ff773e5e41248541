"""Multipliers: what they scale, that gradients pass them, and that a multiplier of 1 adds no operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from specs.model.model import Model
from tests.zoo.filled import random_model
from tests.zoo.tiny import BLOCK, gpt2, t5
from zoo.builder import assemble
from zoo.tracing.symbols import Symbols
from zoo.tracing.tasks import tasks
from zoo.tracing.tracer import Tracer

INPUT, OUTPUT, INNER = 1.7, 0.6, {"gate": 0.3, "value": 0.5, "key": 1.3, "query": 0.7, "step": 1.9}
GATED = {"kind": "gated", "hidden": 12, "activation": "silu"}
MIXTURE = {"kind": "mixture", "experts": 3, "top_k": 2, "expert": GATED}
ATTENTION = {**BLOCK["attention"], "output_gate": True}
MAMBA2 = {"kind": "mamba2", "heads": 2, "head_dim": 3, "state_size": 4, "bias": True}
PROJECTIONS = ("query", "key", "value", "gate")


def decoder(**parts: Any) -> Model:
    return gpt2(decoder={"layers": 2, "block": {**BLOCK, **parts}}, head={"kind": "none"})


def encoder_decoder(multipliers: dict[str, float]) -> Model:
    block = {**BLOCK, "cross_attention": {**ATTENTION, "multipliers": multipliers}}
    return t5(decoder={"layers": 2, "block": block})


def filled(spec: Model) -> nn.Module:
    model = random_model(spec)
    for place, parameter in enumerate(model.parameters()):  # biases, too
        nn.init.normal_(parameter, 0.0, 0.5, generator=torch.Generator().manual_seed(place))
    return model.double().eval()


def outputs(model: Any) -> Tensor:
    ids = torch.arange(12).view(2, 6) % 7
    if hasattr(model, "encode"):
        encoded = model.encode(ids).present_key_values
        found: Tensor = model.decode(ids, encoded).logits
        return found
    hidden: Tensor = model(ids).last_hidden_state
    return hidden


def operations(spec: Model) -> int:
    """The number of operations in the graphs of a model."""
    model = assemble(spec)
    return sum(
        len(Tracer(model, Symbols.of(task.inputs, ())).run(task.call, task.inputs).nodes)
        for task in tasks(model, spec)
    )


def scale(module: Any, factor: float, *, bias: bool = False) -> None:
    module.weight.mul_(factor)
    if bias:
        module.bias.mul_(factor)


def scale_attention(attention: Any) -> None:
    for name in PROJECTIONS:
        scale(attention.get_submodule(name), INPUT)
    scale(attention.output, OUTPUT, bias=True)


def scale_gated(module: Any) -> None:
    scale(module.gate, INNER["gate"], bias=True)
    scale(module.down, OUTPUT, bias=True)


def scale_mamba2(mixer: Any) -> None:
    parts = (6, 6, 4, 4, 2)  # gate, values, keys, queries, steps
    values = [INNER[name] for size, name in zip(parts, INNER, strict=True) for _ in range(size)]
    factors = torch.tensor(values, dtype=torch.float64)
    mixer.input.weight.mul_(INPUT * factors[:, None])
    mixer.input.bias.mul_(factors)
    scale(mixer.output, OUTPUT, bias=True)


ENDS, GATES = {"input": INPUT, "output": OUTPUT}, {"gate": INNER["gate"], "output": OUTPUT}
CASES: dict[str, tuple[Callable[[dict[str, float]], Model], dict[str, float], str, Callable[[Any], None]]] = {
    "attention": (
        lambda multipliers: decoder(attention={**ATTENTION, "multipliers": multipliers}),
        ENDS,
        "attention",
        scale_attention,
    ),
    "cross-attention": (encoder_decoder, ENDS, "cross_attention", scale_attention),
    "gated": (
        lambda multipliers: decoder(feed_forward={**GATED, "multipliers": multipliers}),
        GATES,
        "feed_forward",
        scale_gated,
    ),
    "experts": (
        lambda multipliers: decoder(
            feed_forward={**MIXTURE, "expert": {**GATED, "multipliers": multipliers}}
        ),
        GATES,
        "feed_forward.experts",
        scale_gated,
    ),
    "mamba2": (
        lambda multipliers: decoder(mixer={**MAMBA2, "multipliers": multipliers}),
        {**ENDS, **INNER},
        "mixer",
        scale_mamba2,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_multipliers_scale_what_weights_would(case: str) -> None:
    """Of one model the weights are scaled and of the other the values; gradients differ by the same factors."""
    spec_of, multipliers, path, scale_weights = CASES[case]
    multiplied, plain = filled(spec_of(multipliers)), filled(spec_of({}))
    unscaled = outputs(plain)
    with torch.no_grad():
        for block in range(2):
            scale_weights(plain.get_submodule(f"decoder.blocks.{block}.{path}"))
    found, expected = outputs(multiplied), outputs(plain)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    assert float((found - unscaled).detach().abs().max()) > 1e-3
    for model, values in ((multiplied, found), (plain, expected)):
        model.zero_grad()
        values.sin().sum().backward()
    last = f"decoder.blocks.1.{path}.{'down' if multipliers is GATES else 'output'}.weight"
    ours, theirs = (model.get_parameter(last).grad for model in (multiplied, plain))
    assert theirs is not None
    torch.testing.assert_close(ours, OUTPUT * theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_a_multiplier_of_1_adds_no_operation(case: str) -> None:
    spec_of, multipliers, _, _ = CASES[case]
    none, ones, some = map(operations, map(spec_of, ({}, dict.fromkeys(multipliers, 1.0), multipliers)))
    assert none == ones < some
