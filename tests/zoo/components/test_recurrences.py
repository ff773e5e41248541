"""Recurrences give what one token after the other gives, in chunks, in pieces, with padding anywhere, and backwards."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from transformers.models.mamba.modeling_mamba import mamba_selective_scan
from transformers.models.mamba2.modeling_mamba2 import mamba2_chunk_scan
from transformers.models.minimax.configuration_minimax import MiniMaxConfig
from transformers.models.minimax.modeling_minimax import MiniMaxLightningAttention
from transformers.models.recurrent_gemma.modeling_recurrent_gemma import RecurrentGemmaRglru

from zoo import functional
from zoo.functional import channel_recurrence, matrix_recurrence
from zoo.ops import TensorInfo, operation_of

EXACT: Any = {"rtol": 1e-10, "atol": 1e-10}
LENGTHS = (1, 2, 31, 32, 33, 64, 65, 200)
Function = Callable[..., tuple[Tensor, Tensor]]


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


# ------------------------------------------------------------------------------ the formulas, token by token


def linear_attention(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, state: Tensor, real: Tensor | None
) -> tuple[Tensor, Tensor]:
    repeats = value.shape[1] // key.shape[1]
    outputs = []
    for t in range(value.shape[2]):
        at_query, at_key = (part[:, :, t].repeat_interleave(repeats, 1) for part in (query, key))  # B H K
        new = state * decay[:, :, t, None, None].exp() + torch.einsum("bhk,bhv->bhkv", at_key, value[:, :, t])
        state = new if real is None else torch.where(real[:, t, None, None, None] != 0, new, state)
        outputs.append(torch.einsum("bhkv,bhk->bhv", state, at_query))
    return torch.stack(outputs, 2), state


def selective_scan(
    x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, state: Tensor, real: Tensor | None
) -> tuple[Tensor, Tensor]:
    outputs = []
    for t in range(x.shape[1]):
        step = delta[:, t, :, None]
        new = (step * a).exp() * state + step * b[:, t, None] * x[:, t, :, None]
        state = new if real is None else torch.where(real[:, t, None, None] != 0, new, state)
        outputs.append((state * c[:, t, None]).sum(-1))
    return torch.stack(outputs, 1), state


def diagonal_recurrence(
    x: Tensor, decay: Tensor, state: Tensor, real: Tensor | None
) -> tuple[Tensor, Tensor]:
    outputs = []
    for t in range(x.shape[1]):
        new = decay[:, t].exp() * state + x[:, t]
        state = new if real is None else torch.where(real[:, t, None] != 0, new, state)
        outputs.append(state)
    return torch.stack(outputs, 1), state


def linear_inputs(length: int, groups: int = 2, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    query, key = (normal(2, groups, length, 6, seed=seed, dtype=dtype) for seed in (1, 2))
    decay = -normal(2, 4, length, dtype=dtype).abs() * 2
    return query, key, normal(2, 4, length, 5, dtype=dtype), decay, normal(2, 4, 6, 5)


def selective_inputs(length: int) -> tuple[Tensor, ...]:
    x, delta = normal(2, length, 6, seed=1), normal(2, length, 6, seed=2).abs()
    b, c = (normal(2, length, 3, seed=seed) for seed in (3, 4))
    return x, delta, -normal(6, 3).abs(), b, c, normal(2, 6, 3)


def diagonal_inputs(length: int) -> tuple[Tensor, ...]:
    return normal(2, length, 6, seed=1), -normal(2, length, 6, seed=2).abs(), normal(2, 6)


ALL: list[tuple[Function, Function, Callable[[int], tuple[Tensor, ...]]]] = [
    *((functional.linear_attention, linear_attention, lambda n, groups=groups: linear_inputs(n, groups))
      for groups in (1, 2, 4)),
    (functional.selective_scan, selective_scan, selective_inputs),
    (functional.diagonal_recurrence, diagonal_recurrence, diagonal_inputs),
]  # fmt: skip
NAMES = ["linear attention, 1 group", "2 groups", "4 groups", "selective scan", "diagonal recurrence"]
every_function = pytest.mark.parametrize(("function", "by_token", "inputs"), ALL, ids=NAMES)


def token_axis(given: Tensor, length: int) -> int | None:
    """The axis of the tokens of an input; None if it has none."""
    return given.shape.index(length) if length in given.shape else None


def at_tokens(values: tuple[Tensor, ...], where: slice | Tensor, length: int) -> tuple[Tensor, ...]:
    """The inputs of some tokens; the last input, a state, as it is."""
    found = []
    for given in values[:-1]:
        axis = token_axis(given, length)
        index = torch.arange(length)[where]
        found.append(given if axis is None else given.index_select(axis, index))
    return (*found, values[-1])


@every_function
@pytest.mark.parametrize("length", LENGTHS)
def test_chunks_equal_single_tokens(function: Function, by_token: Function, inputs: Any, length: int) -> None:
    values = inputs(length)
    for got, expected in zip(function(*values, None), by_token(*values, None), strict=True):
        assert got.dtype == torch.float64
        torch.testing.assert_close(got, expected, **EXACT)


@every_function
def test_a_state_that_is_not_given_is_zero(function: Function, by_token: Function, inputs: Any) -> None:
    *values, state = inputs(70)
    for got, expected in zip(function(*values, None, None), function(*values, state * 0, None), strict=True):
        assert torch.equal(got, expected)


@every_function
def test_pieces_equal_the_whole(function: Function, by_token: Function, inputs: Any) -> None:
    length = 107
    values = inputs(length)
    whole, last = function(*values, None)
    for cuts in ((0, 1, 2, 3, 107), (0, 64, 107), (0, 50, 106, 107)):
        state, outputs = values[-1], []
        for start, stop in itertools.pairwise(cuts):
            output, state = function(*at_tokens(values, slice(start, stop), length)[:-1], state, None)
            outputs.append(output)
        torch.testing.assert_close(torch.cat(outputs, outputs[0].ndim - 2), whole, **EXACT)
        torch.testing.assert_close(state, last, **EXACT)


@every_function
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float64])
def test_padding_anywhere_changes_nothing(
    function: Function, by_token: Function, inputs: Any, dtype: torch.dtype
) -> None:
    length = 107
    values = inputs(length)
    real = (torch.rand(2, length, generator=torch.Generator().manual_seed(0)) > 0.3).to(dtype)
    real[1] = 0  # a row that is all padding
    output, state = function(*values, real)
    for got, expected in zip((output, state), by_token(*values, real), strict=True):
        rows = (real[0] != 0).nonzero().squeeze(1)
        axis = got.ndim - 2
        if got is output:
            got, expected = (part[:1].index_select(axis, rows) for part in (got, expected))
        torch.testing.assert_close(got, expected, **EXACT)
    assert torch.equal(state[1], values[-1][1])
    alone = function(*at_tokens(values, real[0] != 0, length), None)
    torch.testing.assert_close(
        output[:1].index_select(output.ndim - 2, (real[0] != 0).nonzero().squeeze(1)), alone[0][:1], **EXACT
    )
    torch.testing.assert_close(state[0], alone[1][0], **EXACT)


@every_function
@pytest.mark.parametrize("padded", [False, True])
def test_gradients_equal_those_of_single_tokens(
    function: Function, by_token: Function, inputs: Any, padded: bool
) -> None:
    length = 70
    real = (torch.rand(2, length) > 0.3).long() if padded else None
    found = []
    for each in (function, by_token):
        values = [given.clone().requires_grad_() for given in inputs(length)]
        output, state = each(*values, real)
        if real is not None:
            output = output * real.reshape(2, *[1] * (output.ndim - 3), length, 1)
        (output * normal(*output.shape, seed=5)).sum().backward(retain_graph=True)
        (state * normal(*state.shape, seed=6)).sum().backward()
        found.append([given.grad for given in values])
    for got, expected in zip(*found, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


@every_function
def test_second_gradients(
    function: Function, by_token: Function, inputs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix_recurrence, "CHUNK", 2)
    monkeypatch.setattr(channel_recurrence, "CHUNK", 2)
    values = [given.clone().requires_grad_() for given in inputs(3)]
    assert torch.autograd.gradcheck(lambda *given: function(*given, None), values, fast_mode=True)
    assert torch.autograd.gradgradcheck(
        lambda *given: function(*given, None), values, atol=1e-4, fast_mode=True
    )


@every_function
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_floats_are_computed_in_float32(
    function: Function, by_token: Function, inputs: Any, dtype: torch.dtype
) -> None:
    *values, state = inputs(70)
    half, state = [given.to(dtype) for given in values], state.float()
    output, new = function(*half, state, None)
    expected, expected_state = function(*(given.float() for given in half), state, None)
    assert (output.dtype, new.dtype) == (dtype, torch.float32)
    assert torch.equal(output, expected.to(dtype))
    assert torch.equal(new, expected_state)


@every_function
@pytest.mark.parametrize("scale", [0.0, 1e-6, 1e3, 1e30])
def test_decays_of_any_size_stay_exact(
    function: Function, by_token: Function, inputs: Any, scale: float
) -> None:
    values = [given.float() for given in inputs(150)]
    decay = {functional.linear_attention: 3, functional.diagonal_recurrence: 1}.get(function, 2)
    values[decay] = values[decay] * scale
    values = [given.requires_grad_() for given in values]
    output, state = function(*values, None)
    exact = by_token(*(given.detach().double() for given in values), None)
    for got, expected in zip((output, state), exact, strict=True):
        torch.testing.assert_close(got.double(), expected, rtol=2e-5, atol=2e-5)
    (output.sum() + state.sum()).backward()
    assert all(given.grad is not None and given.grad.isfinite().all() for given in values)


def test_decays_after_a_hard_reset_keep_their_digits() -> None:
    """Differences of running sums would round decays of 0.001 to multiples of 0.0625 after one of a million."""
    _, key, value, _, state = (given.float() for given in linear_inputs(64, 4))
    decay = torch.full((2, 4, 64), -1e-3)
    decay[:, :, 0] = -1e6
    got = functional.linear_attention(key, key, value, decay, state, None)[0]
    key_, value_, decay_, state_ = (given.double() for given in (key, value, decay, state))
    exact = linear_attention(key_, key_, value_, decay_, state_, None)[0]
    torch.testing.assert_close(got.double(), exact, rtol=1e-5, atol=1e-5)


# ----------------------------------------------------------------------------------- against other implementations


@pytest.mark.parametrize("chunk", [8, 64])
def test_mamba2(chunk: int) -> None:
    length = 100
    x, dt, a = normal(2, length, 4, 5), normal(2, length, 4), -normal(4).abs()
    b, c = normal(2, length, 2, 6, seed=1), normal(2, length, 2, 6, seed=2)
    state = normal(2, 4, 5, 6)
    expected, last = mamba2_chunk_scan(
        x.float(), dt.float(), a.float(), b.float(), c.float(), chunk,
        initial_states=state.float(), dt_softplus=True, return_final_states=True,
    )  # fmt: skip
    step = torch.nn.functional.softplus(dt)  # B T H
    got, new = functional.linear_attention(
        c.transpose(1, 2), b.transpose(1, 2), (x * step[..., None]).transpose(1, 2),
        (step * a).transpose(1, 2), state.mT, None,
    )  # fmt: skip
    torch.testing.assert_close(got.transpose(1, 2).float(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(new.mT.float(), last, rtol=1e-5, atol=1e-5)


def test_lightning_attention() -> None:
    config = MiniMaxConfig(hidden_size=12, num_attention_heads=2, num_key_value_heads=2, num_hidden_layers=3,
                           head_dim=6, block_size=16, hidden_act="silu", layer_types=["linear_attention"] * 3)  # fmt: skip
    torch.manual_seed(0)
    layer = MiniMaxLightningAttention(config, 1)
    x = torch.randn(2, 50, 12)
    expected, last = layer(x, None, None)
    query, key, value = layer.act_fn(layer.qkv_proj(x)).unflatten(-1, (2, 18)).transpose(1, 2).split(6, -1)
    decay = -layer.slope_rate[:, 0].expand(2, 2, 50)
    got, new = functional.linear_attention(query, key, value, decay, None, None)
    out = layer.norm(got.transpose(1, 2).flatten(2))
    out = layer.out_proj(torch.sigmoid(layer.output_gate(x)) * out)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(new, last, rtol=1e-5, atol=1e-5)


def test_mamba() -> None:
    length = 80
    x, dt, a = normal(2, 6, length), normal(2, 6, length), -normal(6, 3).abs()
    b, c = normal(2, 3, length, seed=1), normal(2, 3, length, seed=2)
    given = [part.float() for part in (x, dt, a, b, c)]
    expected, last = mamba_selective_scan(*given, delta_softplus=True, return_last_state=True)
    step = torch.nn.functional.softplus(dt)
    got, new = functional.selective_scan(x.mT, step.mT, a, b.mT, c.mT, None, None)
    torch.testing.assert_close(got.mT.float(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(new.float(), last, rtol=1e-5, atol=1e-5)


def test_rg_lru() -> None:
    x, decay, state = (given.float() for given in diagonal_inputs(40))
    expected, last = RecurrentGemmaRglru._rnn_scan(
        None, x, decay.exp(), torch.zeros(2, 40, 1, dtype=torch.bool), state
    )  # fmt: skip
    got, new = functional.diagonal_recurrence(x, decay, state, None)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(new, last, rtol=1e-5, atol=1e-5)


# ------------------------------------------------------------------------------------------------------------ FLOPs


@every_function
@pytest.mark.parametrize("length", [1, 64, 150])
def test_products_are_counted_as_torch_counts_them(
    function: Function, by_token: Function, inputs: Any, length: int
) -> None:
    values = [given.float() for given in inputs(length)]
    with FlopCounterMode(display=False) as counter:
        result = function(*values, None)
    entry = operation_of(function)
    assert entry is not None
    info = [TensorInfo(tuple(each.shape), each.dtype) for each in (*result, *values)]
    flops = entry.flops(tuple(info[:2]), *info[2:], None)
    assert flops.matmul == counter.get_total_flops()
    real = TensorInfo((2, length), torch.int64)
    assert entry.flops(tuple(info[:2]), *info[2:], real).other > flops.other > 0
