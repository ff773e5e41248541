"""Causal convolutions and delta rules as ONNX graphs, against one token at a time, with padding anywhere."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
import torch
from torch import nn

from exporters.graph.fusing.convolutions import fuse_causal_convolutions
from exporters.graph.fusing.rewriter import Rewriter
from exporters.target.targets import TARGETS
from tests.exporters.graphs import Module, assert_same, graph_of, placeholder, runtime
from tests.thinned import one_in
from tests.zoo.components.recurrences import (
    delta_rule_by_tokens,
    drawn_delta_inputs,
    drawn_generalized_inputs,
    drawn_mask,
    generalized_rule_by_tokens,
)
from zoo import functional
from zoo.tracing.symbols import Symbols
from zoo.tracing.tracer import Tracer

EXACT: dict[str, Any] = {"atol": 5e-6, "rtol": 5e-6}
LENGTHS = (1, 2, 63, 64, 65, 150)
FUSED = ("cpu", "cuda", "webgpu", "portable-27")


def operations(model: Any) -> Counter[str]:
    """How many operations of each kind a graph has, those inside others included."""
    return Counter(node.op_type for node in model.graph.all_nodes())


def rule(*inputs: Any) -> Any:
    return functional.gated_delta_rule(*inputs)


@one_in(4)
@pytest.mark.parametrize("per_channel", [False, True], ids=["per head", "per channel"])
@pytest.mark.parametrize("target", [*TARGETS, "portable-27"])
def test_delta_rules_of_any_length(target: str, per_channel: bool) -> None:
    decay = "f B 4 T 5" if per_channel else "f B 4 T"
    inputs = ("f B 2 T 5", "f B 2 T 5", "f B 4 T 3", decay, "f B 4 T", "f B 4 5 3", "i B T")
    model = graph_of(Module(rule), *inputs, target=target)
    run, found = runtime(model), operations(model)
    assert (found["LinearAttention"], found["Scan"]) == ((1, 0) if target in FUSED else (0, 1))
    for tokens in LENGTHS:
        given, real = drawn_delta_inputs(tokens, per_channel=per_channel), drawn_mask(2, tokens)
        results = run(*given.to(torch.float32), real)
        for got, expected in zip(results.values(), delta_rule_by_tokens(given, real), strict=True):
            torch.testing.assert_close(got.double(), expected, **EXACT)


@pytest.mark.parametrize("target", ["portable", "portable-27", "cpu"])
def test_a_delta_rule_without_state_and_padding(target: str) -> None:
    inputs = ("f B 4 T 5", "f B 4 T 5", "f B 4 T 3", "f B 4 T", "f B 4 T")
    run = runtime(graph_of(Module(lambda *given: rule(*given, None, None)), *inputs, target=target))
    for tokens in (1, 70):
        given = drawn_delta_inputs(tokens, groups=4)
        results = run(*given.to(torch.float32)[:5])
        expected = delta_rule_by_tokens(given._replace(state=torch.zeros_like(given.state)), None)
        for got, other in zip(results.values(), expected, strict=True):
            torch.testing.assert_close(got.double(), other, **EXACT)


@pytest.mark.parametrize("target", ["portable", "portable-27", "cpu", "cuda"])
def test_a_delta_rule_in_half_precision_computes_in_float32(target: str) -> None:
    inputs = ("h B 2 T 5", "h B 2 T 5", "h B 4 T 3", "f B 4 T", "h B 4 T", "f B 4 5 3", "i B T")
    run = runtime(graph_of(Module(rule), *inputs, target=target))
    for tokens in (1, 70):
        given, real = drawn_delta_inputs(tokens), drawn_mask(2, tokens)
        rounded = [part.half() for part in given]
        for place in (3, 5):
            rounded[place] = given[place].float()
        mixed, state = run(*rounded, real).values()
        assert (mixed.dtype, state.dtype) == (torch.float16, torch.float32)
        exact = delta_rule_by_tokens(type(given)(*(part.double() for part in rounded)), real)
        torch.testing.assert_close(mixed.double(), exact[0], atol=1e-3, rtol=1e-3)
        torch.testing.assert_close(state.double(), exact[1], **EXACT)


@one_in(4)
@pytest.mark.parametrize("target", ["portable", "portable-27", "cpu", "cuda"])
@pytest.mark.parametrize("started", [True, False])
def test_generalized_delta_rules_of_any_length(target: str, started: bool) -> None:
    keys, rest = "f B 3 T 5", ("f B 3 5 3", "i B T") if started else ()

    def generalized(*inputs: Any) -> Any:
        return functional.generalized_delta_rule(*inputs, *(() if started else (None, None)))

    model = graph_of(Module(generalized), keys, keys, "f B 3 T 3", keys, keys, keys, *rest, target=target)
    run = runtime(model)
    assert operations(model)["Scan"] == 1
    for tokens in LENGTHS:
        given, real = drawn_generalized_inputs(tokens), drawn_mask(2, tokens)
        *rows, state = given.to(torch.float32).given
        results = run(*rows, *((state, real) if started else ()))
        zeros = given._replace(state=torch.zeros_like(given.state))
        expected = generalized_rule_by_tokens(given if started else zeros, real if started else None)
        for got, other in zip(results.values(), expected, strict=True):
            torch.testing.assert_close(got.double(), other, **EXACT)


class Convolution(nn.Module):
    """A causal convolution with weights: B T 6, its state and a mask."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(6, 4, generator=generator))
        self.bias = nn.Parameter(torch.randn(6, generator=generator)) if bias else None

    def forward(self, x: Any, state: Any = None, real: Any = None) -> Any:
        alignment = functional.token_alignment(real, 4)
        return functional.causal_convolution(x, self.weight, self.bias, state, alignment)


@one_in(5)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("given", [1, 2, 3])
@pytest.mark.parametrize("target", [*TARGETS, "portable-27"])
def test_causal_convolutions(target: str, given: int, bias: bool) -> None:
    module = Convolution(bias)
    model = graph_of(module, *("f B T 6", "f B 6 3", "i B T")[:given], target=target)
    run, found = runtime(model), operations(model)
    branches = target == "cpu" and given == 3
    assert (found["CausalConvWithState"], found["Conv"]) == ((1, branches) if target in FUSED else (0, 1))
    for tokens, padded in product((1, 2, 3, 9), (False, True)):
        generator = torch.Generator().manual_seed(tokens)
        x, state = (torch.randn(shape, generator=generator) for shape in ((3, tokens, 6), (3, 6, 3)))
        real = drawn_mask(3, tokens, seed=tokens) if padded else torch.ones(3, tokens, dtype=torch.int64)
        inputs = (x, state, real)[:given]
        got, last = run(*inputs).values()
        with torch.no_grad():
            expected, kept = module(*inputs)
        mask = real[:, :, None] if given == 3 else torch.ones(1)
        torch.testing.assert_close(got * mask, expected * mask, **EXACT)
        assert torch.equal(last, kept)


def test_calls_without_padding_move_none() -> None:
    """Both layers share the branch that finds the moves, and what it needs."""

    def layers(x: Any, weight: Any, state: Any, real: Any) -> Any:
        alignment = functional.token_alignment(real, 4)
        x, first = functional.causal_convolution(x, weight, None, state, alignment)
        return *functional.causal_convolution(x, weight, None, state, alignment), first

    model = graph_of(Module(layers), "f B T 6", "f 6 4", "f B 6 3", "i B T", target="cpu")
    always = Counter(node.op_type for node in model.graph)
    assert always == Counter(If=3, ReduceMin=1, Equal=1, Unsqueeze=1)


@pytest.mark.parametrize("target", ["cpu", "cuda", "portable"])
def test_the_last_tokens(target: str) -> None:
    def last(x: Any, mask: Any) -> Any:
        return functional.last_real(x, functional.last((mask > -2).to(torch.int64), x.shape[1])) * 1.0

    sizes = [{"B": 3, "T": tokens, "S": 9} for tokens in (1, 2, 7)]
    found = operations(assert_same(Module(last), "f B T 6", "i B S", sizes=sizes, target=target))
    assert found["If"] == (target == "cpu")


@pytest.mark.parametrize("factor", [0.25, None])
def test_the_length_of_vectors_is_in_the_weights_of_their_norm(factor: float | None) -> None:
    def vectors(x: Any, y: Any) -> Any:
        unit = functional.unit_length(x, 1e-6).transpose(1, 2)
        return unit * (y.transpose(1, 2) if factor is None else factor)

    found = operations(assert_same(vectors, "f B T 6", "f B T 6", target="cpu"))
    assert found["Mul"] == (factor is None)


def test_an_unfused_convolution_is_reported() -> None:
    inputs = [placeholder("x", "h B T 6")]
    traced = Tracer(Convolution(False).half(), Symbols.of(inputs, ())).run(
        lambda module, values: {"y": module(values["x"])[0]}, inputs
    )
    reasons = {name: fuse_causal_convolutions(Rewriter(traced), target) for name, target in TARGETS.items()}
    assert reasons.pop("cpu") == ["CausalConvWithState: : it has no kernel for float16"]
    assert not any(reasons.values())


@pytest.mark.parametrize("target", ["cuda", "portable-27"])
def test_a_convolution_in_half_precision(target: str) -> None:
    module = Convolution(True).half()
    model = graph_of(module, "h B T 6", "h B 6 3", "i B T", target=target)
    generator = torch.Generator().manual_seed(0)
    x, state = (torch.randn(shape, generator=generator).half() for shape in ((3, 7, 6), (3, 6, 3)))
    real = drawn_mask(3, 7)
    got, last = runtime(model)(x, state, real).values()
    with torch.no_grad():
        expected, kept = module(x, state, real)
    torch.testing.assert_close(got * real[:, :, None], expected * real[:, :, None], atol=4e-3, rtol=2e-3)
    assert torch.equal(last, kept)
