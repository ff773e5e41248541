"""The gated delta rule in chunks and in single steps, against one token at a time and against transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from transformers.models.kimi_linear import modeling_kimi_linear as kimi
from transformers.models.qwen3_next import modeling_qwen3_next as qwen

from tests.thinned import one_in
from tests.zoo.components.recurrences import DeltaInputs, delta_rule_by_tokens, drawn_delta_inputs, drawn_mask
from zoo.functional import gated_delta_rule
from zoo.functional.delta import delta_rule, unit_lower_inverse
from zoo.ops import TensorInfo, operation_of

PER_CHANNEL = pytest.mark.parametrize("per_channel", [False, True], ids=["per head", "per channel"])
EXACT: dict[str, Any] = {"atol": 1e-10, "rtol": 1e-10}


@one_in(6)
@PER_CHANNEL
@pytest.mark.parametrize("strength", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("tokens", [1, 2, 3, 63, 64, 65, 150])
def test_chunks_compute_one_token_at_a_time(tokens: int, strength: float, per_channel: bool) -> None:
    inputs = drawn_delta_inputs(tokens, per_channel=per_channel, strength=strength, seed=tokens)
    for real in (None, drawn_mask(2, tokens), torch.zeros(2, tokens)):
        found, expected = gated_delta_rule(*inputs, real), delta_rule_by_tokens(inputs, real)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, **EXACT)


@PER_CHANNEL
@pytest.mark.parametrize("cut", [1, 5, 64])
def test_pieces_and_the_whole_agree(cut: int, per_channel: bool) -> None:
    inputs, real = drawn_delta_inputs(70, per_channel=per_channel), drawn_mask(2, 70)
    whole, last = gated_delta_rule(*inputs, real)
    pieces, state = [], inputs.state
    for *parts, part_real in zip(*(x.split(cut, 2) for x in inputs[:5]), real.split(cut, 1), strict=True):
        piece, state = gated_delta_rule(*DeltaInputs(*(*parts, state)), part_real)
        pieces.append(piece)
    torch.testing.assert_close(torch.cat(pieces, 2), whole, **EXACT)
    torch.testing.assert_close(state, last, **EXACT)


def test_no_state_is_a_state_of_zeros() -> None:
    inputs = drawn_delta_inputs(7)
    found = gated_delta_rule(*inputs[:5], None, None)
    expected = gated_delta_rule(*inputs[:5], torch.zeros_like(inputs.state), None)
    assert all(map(torch.equal, found, expected))


@pytest.mark.slow
@PER_CHANNEL
def test_gradients_are_those_of_differences(per_channel: bool) -> None:
    inputs = drawn_delta_inputs(5, batch=1, groups=1, heads=2, width=2, out=2, per_channel=per_channel)
    given = [each.requires_grad_() for each in inputs]
    real = torch.tensor([[1, 1, 0, 1, 1]])
    assert torch.autograd.gradcheck(lambda *parts: gated_delta_rule(*DeltaInputs(*parts), real), given)


@PER_CHANNEL
def test_gradients_through_chunks_are_those_through_tokens(per_channel: bool) -> None:
    inputs, real = drawn_delta_inputs(100, per_channel=per_channel), drawn_mask(2, 100)
    weights = drawn_delta_inputs(100, seed=1)

    def gradients(rule: Callable[[DeltaInputs], tuple[Tensor, Tensor]]) -> tuple[Tensor, ...]:
        given = DeltaInputs(*(each.detach().requires_grad_() for each in inputs))
        out, state = rule(given)
        return torch.autograd.grad((out * weights.value).sum() + (state * weights.state).sum(), given)

    found = gradients(lambda given: gated_delta_rule(*given, real))
    expected = gradients(lambda given: delta_rule_by_tokens(given, real))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("tokens", [1, 3, 100])
def test_the_rule_is_that_of_qwen3_next(tokens: int) -> None:
    inputs = drawn_delta_inputs(tokens).to(torch.float32)
    scaled = inputs._replace(query=inputs.query * inputs.query.shape[-1] ** -0.5)  # theirs scales inside
    found = gated_delta_rule(*scaled, None)
    given = [each.transpose(1, 2) for each in inputs[:5]]
    for reference in (qwen.torch_chunk_gated_delta_rule, qwen.torch_recurrent_gated_delta_rule):
        mixed, state = reference(*given, initial_state=inputs.state, output_final_state=True)
        torch.testing.assert_close(found[0], mixed.transpose(1, 2), atol=2e-5, rtol=1e-5)
        torch.testing.assert_close(found[1], state, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("tokens", [1, 3, 100])
def test_the_rule_per_channel_is_that_of_kimi_linear(tokens: int) -> None:
    inputs = drawn_delta_inputs(tokens, groups=4, per_channel=True).to(torch.float32)
    scaled = inputs._replace(query=inputs.query * inputs.query.shape[-1] ** -0.5)
    found = gated_delta_rule(*scaled, None)
    given = [each.transpose(1, 2) for each in inputs[:5]]
    for reference in (kimi.chunk_kimi_delta_attention, kimi.recurrent_kimi_delta_attention):
        mixed, state = reference(*given, initial_state=inputs.state, output_final_state=True)
        torch.testing.assert_close(found[0], mixed.transpose(1, 2), atol=2e-5, rtol=1e-5)
        torch.testing.assert_close(found[1], state, atol=2e-5, rtol=1e-5)


@PER_CHANNEL
def test_rounding_stays_small_however_strong_decays_are(per_channel: bool) -> None:
    """One token forgets everything, and those after it forget little: sums over a whole chunk would cancel."""
    inputs = drawn_delta_inputs(64, per_channel=per_channel, strength=0.01)
    inputs.decay[:, :, 3] = -1000.0
    exact = delta_rule_by_tokens(inputs, None)
    found = gated_delta_rule(*inputs.to(torch.float32), None)
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, atol=5e-6, rtol=5e-6)


def test_rounding_stays_small_where_keys_repeat() -> None:
    """Equal keys without decay: the powers of the triangular system reach 1e18, and would cancel."""
    inputs = drawn_delta_inputs(64, width=4, strength=0.0)
    same = inputs._replace(key=torch.full_like(inputs.key, 0.5), beta=torch.ones_like(inputs.beta))
    exact = delta_rule_by_tokens(same, None)
    for one, other in zip(gated_delta_rule(*same.to(torch.float32), None), exact, strict=True):
        torch.testing.assert_close(one.double(), other, atol=1e-5, rtol=1e-5)


def test_a_triangular_inverse() -> None:
    lower = torch.randn(3, 2, 16, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    unit = lower.tril(-1) + torch.eye(16, dtype=torch.float64)
    torch.testing.assert_close(unit_lower_inverse(lower), torch.linalg.inv(unit), atol=1e-7, rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("tokens", [1, 70])
def test_half_precision_computes_in_float32(dtype: torch.dtype, tokens: int) -> None:
    inputs = drawn_delta_inputs(tokens).to(dtype)._replace(state=drawn_delta_inputs(1).state.float())
    mixed, state = gated_delta_rule(*inputs, None)
    assert (mixed.dtype, state.dtype) == (dtype, torch.float32)
    wide = gated_delta_rule(*inputs.to(torch.float32), None)
    assert torch.equal(mixed, wide[0].to(dtype))
    assert torch.equal(state, wide[1])


@PER_CHANNEL
@pytest.mark.parametrize("tokens", [1, 2, 5, 64, 200])
def test_the_products_that_are_counted_are_those_that_run(tokens: int, per_channel: bool) -> None:
    inputs = drawn_delta_inputs(tokens, width=8, out=6, per_channel=per_channel)
    with FlopCounterMode(display=False) as inside:
        delta_rule(*inputs, None)
    with FlopCounterMode(display=False) as whole:
        gated_delta_rule(*inputs, None)
    entry = operation_of(gated_delta_rule)
    assert entry is not None
    infos = [TensorInfo(tuple(each.shape), each.dtype) for each in inputs]
    products = entry.flops(entry.shape(*infos, None), *infos, None).matmul
    assert products == inside.get_total_flops() == whole.get_total_flops()


@PER_CHANNEL
def test_only_what_is_trained_gets_a_gradient(per_channel: bool) -> None:
    inputs = drawn_delta_inputs(3, per_channel=per_channel)
    for frozen in range(6):
        given = DeltaInputs(
            *(each.detach().requires_grad_(place != frozen) for place, each in enumerate(inputs))
        )
        mixed, state = gated_delta_rule(*given, None)
        (mixed.sum() + state.sum()).backward()
        assert [each.grad is None for each in given] == [place == frozen for place in range(6)]


def test_autocast_leaves_the_rule_in_float32() -> None:
    inputs = drawn_delta_inputs(70).to(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = gated_delta_rule(*inputs, None)
    for one, other in zip(found, gated_delta_rule(*inputs, None), strict=True):
        assert torch.equal(one, other)


class Rule(torch.nn.Module):
    """The rule as a module, for compilers."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor) -> Tensor:
        mixed, state = gated_delta_rule(query, key, value, decay, beta, None, None)
        return mixed.sum(-1) + state.sum()


@pytest.mark.slow  # the compiler takes seconds to load
def test_the_rule_is_exported_with_symbolic_lengths() -> None:
    names = ("query", "key", "value", "decay", "beta")
    sizes = {name: {2: torch.export.Dim.DYNAMIC} for name in names}
    program = torch.export.export(Rule(), tuple(drawn_delta_inputs(70)[:5]), dynamic_shapes=sizes)
    for tokens in (3, 100):
        inputs = drawn_delta_inputs(tokens)[:5]
        torch.testing.assert_close(program.module()(*inputs), Rule()(*inputs), **EXACT)


@pytest.mark.slow
def test_the_rule_compiles_as_one_graph_and_trains() -> None:
    compiled = torch.compile(Rule(), fullgraph=True, backend="aot_eager")
    for tokens in (3, 70):
        found, expected = (
            torch.autograd.grad((rule(*given) ** 2).sum(), given)
            for rule in (compiled, Rule())
            for given in [[each.requires_grad_() for each in drawn_delta_inputs(tokens)[:5]]]
        )
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, **EXACT)
