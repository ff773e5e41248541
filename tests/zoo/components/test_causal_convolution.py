"""Causal convolutions over tokens, against windows of real tokens that are collected one by one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.models.qwen3_next.modeling_qwen3_next import causal_conv1d_fn, causal_conv1d_update

from zoo import functional

relaxed = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

CHANNELS = 3


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def convolved(
    x: Tensor, weight: Tensor, bias: Tensor | None, state: Tensor | None, real: Tensor | None
) -> tuple[Tensor, Tensor]:
    alignment = functional.token_alignment(real, weight.shape[1])
    return functional.causal_convolution(x, weight, bias, state, alignment)


def by_windows(x: Tensor, weight: Tensor, bias: Tensor, state: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """The same, token by token; 0 for padding."""
    y, states = torch.zeros_like(x), []
    for row in range(len(x)):
        window = [*state[row].T]  # W - 1 of D
        for token in range(x.shape[1]):
            if real[row, token]:
                window.append(x[row, token])
                last = torch.stack(window[-weight.shape[1] :], 1)  # D W
                y[row, token] = (last * weight).sum(1) + bias
        states.append(torch.stack(window[len(window) - weight.shape[1] + 1 :], 1))
    return y, torch.stack(states)


masks = st.integers(1, 7).flatmap(
    lambda length: st.lists(
        st.lists(st.integers(0, 1), min_size=length, max_size=length), min_size=1, max_size=3
    )
)


@relaxed
@given(masks, st.integers(2, 4))
@example([[0, 0, 0]], 4)
@example([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [1, 0, 1, 0, 1]], 4)
@example([[1], [0]], 3)
def test_padding_enters_no_window_and_no_state(mask: list[list[int]], width: int) -> None:
    real = torch.tensor(mask)
    x, weight, bias = drawn(*real.shape, CHANNELS), drawn(CHANNELS, width, seed=1), drawn(CHANNELS, seed=2)
    state = drawn(len(real), CHANNELS, width - 1, seed=3)
    expected, last = by_windows(x, weight, bias, state, real)
    y, found = convolved(x, weight, bias, state, real)
    torch.testing.assert_close(y * real[:, :, None], expected)
    assert torch.equal(found, last)
    assert y.isfinite().all()


@relaxed
@given(masks, st.integers(1, 6))
def test_pieces_and_the_whole_agree(mask: list[list[int]], cut: int) -> None:
    real = torch.tensor(mask)
    x, weight, state = drawn(*real.shape, CHANNELS), drawn(CHANNELS, 4, seed=1), None
    y, last = convolved(x, weight, None, None, real)
    pieces = []
    for part, part_real in zip(x.split(cut, 1), real.split(cut, 1), strict=True):
        piece, state = convolved(part, weight, None, state, part_real)
        pieces.append(piece)
    kept = real[:, :, None]
    torch.testing.assert_close(torch.cat(pieces, 1) * kept, y * kept)
    assert state is not None
    assert torch.equal(state, last)


def test_no_mask_is_a_mask_of_ones() -> None:
    x, weight = drawn(2, 5, CHANNELS), drawn(CHANNELS, 3, seed=1)
    for state in (None, torch.zeros(2, CHANNELS, 2, dtype=torch.float64)):
        for real in (None, torch.ones(2, 5), torch.ones(2, 5, dtype=torch.bool)):
            y, last = convolved(x, weight, None, state, real)
            torch.testing.assert_close(y, convolved(x, weight, None, None, None)[0])
            assert torch.equal(last, x[:, -2:].transpose(1, 2))


def test_the_convolution_is_that_of_transformers() -> None:
    x, weight, bias = drawn(2, 6, CHANNELS), drawn(CHANNELS, 4, seed=1), drawn(CHANNELS, seed=2)
    y, state = convolved(x, weight, bias, None, None)
    expected = causal_conv1d_fn(x.transpose(1, 2), weight, bias)
    torch.testing.assert_close(y.transpose(1, 2), expected)
    step, theirs = drawn(2, 1, CHANNELS, seed=3), state.clone()
    y, state = convolved(step, weight, bias, state, None)
    torch.testing.assert_close(
        y.transpose(1, 2), causal_conv1d_update(step.transpose(1, 2), theirs, weight, bias)
    )
    assert torch.equal(state, theirs)


def test_gradients_are_those_of_differences_and_padding_gets_none() -> None:
    real = torch.tensor([[0, 1, 1, 0, 1], [1, 1, 0, 0, 0]])
    kept = real[:, :, None]
    given: Any = [drawn(2, 5, CHANNELS), drawn(CHANNELS, 3), drawn(CHANNELS), drawn(2, CHANNELS, 2)]
    given = [each.requires_grad_() for each in given]

    def call(x: Tensor, weight: Tensor, bias: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        y, state = convolved(x, weight, bias, state, real)
        return y * kept, state

    assert torch.autograd.gradcheck(call, given)
    y, state = call(*given)
    (y.square().sum() + state.square().sum()).backward()
    assert torch.equal(given[0].grad * (1 - kept), torch.zeros(2, 5, CHANNELS))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_keeps_its_dtype(dtype: torch.dtype) -> None:
    x, weight = drawn(1, 4, CHANNELS).to(dtype), drawn(CHANNELS, 3).to(dtype)
    y, state = convolved(x, weight, None, None, torch.ones(1, 4))
    assert y.dtype == state.dtype == dtype
    exact = convolved(x.double(), weight.double(), None, None, None)[0]
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(y.double(), exact, atol=4 * unit, rtol=2 * unit)
