"""The generalized delta rule in chunks and in single steps, against the formula of RWKV-7, one token at a time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from tests.zoo.components.recurrences import (
    GeneralizedInputs,
    drawn_delta_inputs,
    drawn_generalized_inputs,
    drawn_mask,
    generalized_rule_by_tokens,
)
from zoo.functional import gated_delta_rule, generalized_delta_rule
from zoo.functional.generalized_delta import generalized_rule
from zoo.ops import TensorInfo, operation_of


def rule(*inputs: Any) -> Any:
    return generalized_delta_rule(*inputs)


EXACT: dict[str, Any] = {"atol": 1e-10, "rtol": 1e-10}


@pytest.mark.parametrize("tokens", [1, 2, 3, 63, 64, 65, 150])
def test_chunks_compute_one_token_at_a_time(tokens: int) -> None:
    inputs = drawn_generalized_inputs(tokens, seed=tokens)
    for real in (None, drawn_mask(2, tokens), torch.zeros(2, tokens)):
        found, expected = (
            rule(*inputs.given, real),
            generalized_rule_by_tokens(inputs, real),
        )
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, **EXACT)


@pytest.mark.parametrize("cut", [1, 5, 64])
def test_pieces_and_the_whole_agree(cut: int) -> None:
    inputs, real = drawn_generalized_inputs(70), drawn_mask(2, 70)
    *rows, state = inputs.given
    whole, last = rule(*rows, state, real)
    pieces = []
    for *parts, part_real in zip(*(x.split(cut, 2) for x in rows), real.split(cut, 1), strict=True):
        piece, state = rule(*parts, state, part_real)
        pieces.append(piece)
    torch.testing.assert_close(torch.cat(pieces, 2), whole, **EXACT)
    torch.testing.assert_close(state, last, **EXACT)


def test_no_state_is_a_state_of_zeros() -> None:
    *rows, state = drawn_generalized_inputs(7).given
    found = rule(*rows, None, None)
    assert all(map(torch.equal, found, rule(*rows, torch.zeros_like(state), None)))


@pytest.mark.parametrize("tokens", [1, 70])
def test_the_gated_rule_is_a_case_of_it(tokens: int) -> None:
    query, key, value, decay, beta, state = drawn_delta_inputs(tokens, groups=4, per_channel=True)
    weighted = key * beta[..., None]
    found = rule(query, weighted, value, decay, key, weighted, state, None)
    expected = gated_delta_rule(query, key, value, decay, beta, state, None)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, **EXACT)


@pytest.mark.slow
def test_gradients_are_those_of_differences() -> None:
    inputs = drawn_generalized_inputs(5, batch=1, heads=2, width=2, out=2).given
    given = [each.requires_grad_() for each in inputs]
    real = torch.tensor([[1, 1, 0, 1, 1]])
    assert torch.autograd.gradcheck(lambda *parts: rule(*parts, real), given)


def test_gradients_through_chunks_are_those_through_tokens() -> None:
    inputs, real = drawn_generalized_inputs(100), drawn_mask(2, 100)
    weights = drawn_generalized_inputs(100, seed=1)

    def gradients(compute: Any) -> tuple[Tensor, ...]:
        given = GeneralizedInputs(*(each.detach().requires_grad_() for each in inputs))
        out, state = compute(given)
        return torch.autograd.grad((out * weights.value).sum() + (state * weights.state).sum(), given)

    found = gradients(lambda given: rule(*given.given, real))
    expected = gradients(lambda given: generalized_rule_by_tokens(given, real))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


def test_rounding_stays_small() -> None:
    inputs = drawn_generalized_inputs(256, width=16, out=16)
    exact = generalized_rule_by_tokens(inputs, None)
    found = rule(*inputs.to(torch.float32).given, None)
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("tokens", [1, 70])
def test_half_precision_computes_in_float32(dtype: torch.dtype, tokens: int) -> None:
    *rows, state = drawn_generalized_inputs(tokens).given
    rounded = [each.to(dtype) for each in rows]
    mixed, last = rule(*rounded, state.float(), None)
    assert (mixed.dtype, last.dtype) == (dtype, torch.float32)
    wide = rule(*(each.float() for each in rounded), state.float(), None)
    assert torch.equal(mixed, wide[0].to(dtype))
    assert torch.equal(last, wide[1])


@pytest.mark.parametrize("tokens", [1, 2, 5, 64, 200])
def test_the_products_that_are_counted_are_those_that_run(tokens: int) -> None:
    inputs = drawn_generalized_inputs(tokens, width=8, out=6).given
    given: Any = (*inputs, None)
    with FlopCounterMode(display=False) as inside:
        generalized_rule(*given)
    with FlopCounterMode(display=False) as whole:
        rule(*inputs, None)
    entry = operation_of(generalized_delta_rule)
    assert entry is not None
    infos = [TensorInfo(tuple(each.shape), each.dtype) for each in inputs]
    products = entry.flops(entry.shape(*infos, None), *infos, None).matmul
    assert products == inside.get_total_flops() == whole.get_total_flops()


def test_only_what_is_trained_gets_a_gradient() -> None:
    inputs = drawn_generalized_inputs(3).given
    for frozen in range(7):
        given = [each.detach().requires_grad_(place != frozen) for place, each in enumerate(inputs)]
        mixed, state = rule(*given, None)
        (mixed.sum() + state.sum()).backward()
        assert [each.grad is None for each in given] == [place == frozen for place in range(7)]
