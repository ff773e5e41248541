"""Shape rules of operations give the shapes and dtypes that torch gives for the same arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from zoo import functional
from zoo.ops import TensorInfo, operations, result_info
from zoo.ops.creation import size

relaxed = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.bool]
FLOATS = [dtype for dtype in DTYPES if dtype.is_floating_point]


def info(value: Any) -> Any:
    """A value with TensorInfo in place of tensors."""
    if isinstance(value, Tensor):
        return TensorInfo(tuple(value.shape), value.dtype)
    return type(value)(info(item) for item in value) if isinstance(value, (tuple, list)) else value


def plain(function: Any) -> Callable[..., Any]:
    return (lambda x, *a, **k: getattr(x, function)(*a, **k)) if isinstance(function, str) else function


def assert_known(target: Any, *args: Any, **kwargs: Any) -> None:
    """Assert that the rule of a function gives what torch does."""
    expected = plain(target)(*args, **kwargs)
    got = result_info(
        target, tuple(info(arg) for arg in args), {key: info(arg) for key, arg in kwargs.items()}
    )
    assert got == info(expected), (target, args, kwargs)


def tensor(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ones(shape, dtype=dtype)


X = tensor(2, 3, 6)
shapes = st.lists(st.integers(1, 4), min_size=0, max_size=4)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two shapes that broadcast."""
    full = draw(shapes)
    one, two = (
        [draw(st.sampled_from([n, 1])) for n in full][draw(st.integers(0, len(full))) :] for _ in range(2)
    )
    return one, two


ARITHMETIC = [operator.add, operator.sub, operator.mul, torch.add, torch.sub, torch.mul, "add", "sub", "mul"]
DIVISIONS = [operator.truediv, torch.div, "div"]
POWERS = [operator.pow, torch.pow, "pow"]
COMPARISONS = [operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne]


@relaxed
@given(pairs(), st.sampled_from([*ARITHMETIC, *DIVISIONS, *POWERS, *COMPARISONS, torch.maximum, torch.minimum,
                                 operator.floordiv]), st.sampled_from(DTYPES), st.sampled_from(DTYPES))  # fmt: skip
def test_two_tensors(shapes: Any, target: Any, first: torch.dtype, second: torch.dtype) -> None:
    one, two = tensor(*shapes[0], dtype=first), tensor(*shapes[1], dtype=second)
    try:
        plain(target)(one, two)
    except RuntimeError:  # such as the difference of booleans
        return
    assert_known(target, one, two)


@relaxed
@given(shapes, st.sampled_from([*ARITHMETIC, *DIVISIONS, *POWERS, *COMPARISONS, operator.floordiv]),
       st.sampled_from(DTYPES), st.sampled_from([2, 0.5, True]), st.booleans())  # fmt: skip
def test_a_tensor_and_a_number(
    shape: Any, target: Any, dtype: torch.dtype, number: Any, turned: bool
) -> None:
    pair = (tensor(*shape, dtype=dtype), number)
    if turned and not isinstance(target, str):
        pair = pair[::-1]
    try:
        plain(target)(*pair)
    except (RuntimeError, TypeError):
        return
    assert_known(target, *pair)


@relaxed
@given(
    pairs(),
    st.sampled_from([operator.and_, operator.or_]),
    st.sampled_from([torch.bool, torch.int64, torch.int32]),
)
def test_logic(shapes: Any, target: Any, dtype: torch.dtype) -> None:
    assert_known(target, tensor(*shapes[0], dtype=dtype), tensor(*shapes[1], dtype=dtype))


@relaxed
@given(pairs(), pairs(), st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_where(one: Any, two: Any, first: torch.dtype, second: torch.dtype) -> None:
    condition, a, b = (
        tensor(*one[0], dtype=torch.bool),
        tensor(*one[1], dtype=first),
        tensor(*one[0], dtype=second),
    )
    assert_known(torch.where, condition, a, b)
    for number in (0.5, 3):
        assert_known(torch.where, condition, a, number)
        assert_known(torch.where, condition, number, b)
        assert_known(torch.where, condition, number, 2.5)
        assert_known(torch.where, condition, number, 2)


SAME = [F.relu, torch.neg, torch.abs, operator.neg, "abs", "neg", "relu", "contiguous", "clone", "detach"]
FLOATING = [torch.tanh, torch.sigmoid, torch.exp, torch.log, "log", torch.sin, torch.cos, torch.rsqrt, torch.sqrt,
            "tanh", "sigmoid", "exp", "sin", "cos", "rsqrt", "sqrt"]  # fmt: skip


@relaxed
@given(shapes, st.sampled_from([*SAME, *FLOATING]), st.sampled_from(DTYPES[:-1]))
def test_one_tensor(shape: Any, target: Any, dtype: torch.dtype) -> None:
    assert_known(target, tensor(*shape, dtype=dtype))


@relaxed
@given(st.sampled_from(FLOATS))
def test_layers_that_keep_shape_and_dtype(dtype: torch.dtype) -> None:
    x, weight = tensor(2, 3, 6, dtype=dtype), tensor(6, dtype=dtype)
    for target in (F.gelu, F.silu, F.elu, F.softplus):
        assert_known(target, x)
    assert_known(F.dropout, x, 0.1, False)
    assert_known(F.layer_norm, x, (6,), weight, weight, 1e-5)
    assert_known(F.rms_norm, x, (6,), weight, 1e-5)
    assert_known(F.normalize, x, dim=-1)
    assert_known(F.softmax, x, dim=-1)
    assert_known(F.softmax, x, -1, dtype=torch.float32)
    assert_known("softmax", x, 1)
    assert_known(F.linear, x, tensor(4, 6, dtype=dtype), tensor(4, dtype=dtype))
    assert_known(F.linear, x, tensor(4, 6, dtype=dtype))
    assert_known(F.embedding, tensor(2, 3, dtype=torch.int64), tensor(5, 4, dtype=dtype))
    for name in ("to", "type"):
        assert_known(name, x, torch.float32)
    assert_known("to", x, dtype=torch.int64)
    assert_known("to", x, tensor(1, dtype=torch.int32))
    assert_known("to", x, x.device)
    assert_known("float", x)


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("bounds", [{"min": 0}, {"max": 0.5}, {"min": 0, "max": 1}, {"min": -0.5, "max": 1}])
@pytest.mark.parametrize("target", [torch.clamp, "clamp"])
def test_clamp(dtype: torch.dtype, bounds: dict[str, Any], target: Any) -> None:
    assert_known(target, tensor(2, 3, dtype=dtype), **bounds)


def test_clamp_between_tensors() -> None:
    assert_known(torch.clamp, tensor(2, 1), tensor(3), tensor(2, 3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums(dtype: torch.dtype) -> None:
    x = tensor(2, 3, 4, dtype=dtype)
    target: Any
    for target in (torch.sum, "sum"):
        for dim in (0, -1, (0, 2), [1], None):
            assert_known(target, x, dim)
            assert_known(target, x, dim, True)
        assert_known(target, x)
    for target in (torch.amax, "amax"):
        assert_known(target, x, (0, -1), True)
        assert_known(target, x, 1)
    for target in (torch.cumsum, "cumsum"):
        assert_known(target, x, 1)
        assert_known(target, x, dim=-1)
    if dtype.is_floating_point:
        for target in (torch.mean, "mean"):
            assert_known(target, x)
            assert_known(target, x, (-1, 0), keepdim=True)


@pytest.mark.parametrize("target", [torch.topk, "topk"])
def test_the_largest(target: Any) -> None:
    x = torch.randn(3, 4, 5)
    for arguments in ((2,), (5, -1), (3, 0), (1, 1, False, False)):
        got = result_info(target, (info(x), *arguments), {})
        assert got == tuple(info(result) for result in x.topk(*arguments))
    with pytest.raises(ValueError, match="topk of 5 exceeds the axis size 4"):
        result_info(target, (info(x), 5, 1), {})


@relaxed
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_rearranging(shape: list[int], data: st.DataObject) -> None:
    x = tensor(*shape)
    rank = len(shape)
    axis = st.integers(-rank, rank - 1)
    one, two = data.draw(axis), data.draw(axis)
    order = data.draw(st.permutations(range(rank)))
    order = [axis - rank if data.draw(st.booleans()) else axis for axis in order]
    start, end = sorted((one % rank, two % rank))
    target: Any
    for target in (torch.transpose, "transpose"):
        assert_known(target, x, one, two)
    for target in (torch.flatten, "flatten"):
        assert_known(target, x, start, end - rank)
        assert_known(target, x, start)
        assert_known(target, x)
    for target in (torch.squeeze, "squeeze"):
        assert_known(target, x, one)
    for target in (torch.unsqueeze, "unsqueeze"):
        assert_known(target, x, data.draw(st.integers(-rank - 1, rank)))
    assert_known(torch.permute, x, order)
    assert_known("permute", x, *order)
    assert_known("permute", x, tuple(order))
    sizes = [*x.permute(order).shape]
    sizes[data.draw(st.integers(0, rank - 1))] = -1
    for target in ("view", "reshape"):
        assert_known(target, x, *sizes)
        assert_known(target, x, tuple(sizes))
    assert_known(torch.reshape, x, sizes)
    assert_known(torch.cat, [x, x, x[:0] if one % rank == 0 else x], one)
    assert_known(torch.stack, (x, x), data.draw(st.integers(-rank - 1, rank)))
    assert_known("expand", x, 2, *[-1] * rank)
    assert_known("expand", x.unsqueeze(0), [data.draw(st.integers(1, 3)), *shape])
    for target in (torch.unflatten, "unflatten"):
        assert_known(target, x, one, (1, -1, 1))
        assert_known(target, x, one, [shape[one]])


@relaxed
@given(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.data())
def test_parts_of_an_axis(shape: list[int], data: st.DataObject) -> None:
    x, axis = tensor(*shape), data.draw(st.integers(-len(shape), len(shape) - 1))
    count, cut = data.draw(st.integers(1, 6)), data.draw(st.integers(0, shape[axis]))
    target: Any
    for target in (torch.chunk, "chunk"):
        assert_known(target, x, count, axis)
    for target in (torch.split, "split"):
        assert_known(target, x, count, axis)
        assert_known(target, x, [cut, shape[axis] - cut], axis)
    for target in (torch.narrow, "narrow"):
        assert_known(target, x, axis, cut, shape[axis] - cut)
        assert_known(target, x, axis, 0, cut)


@pytest.mark.parametrize(
    "dtypes", [(torch.float32, torch.int64), (torch.float16, torch.float32), (torch.bool, torch.int32)]
)
def test_joining_promotes(dtypes: Any) -> None:
    tensors = [tensor(2, 3, dtype=dtype) for dtype in dtypes]
    assert_known(torch.cat, tensors)
    assert_known(torch.stack, tensors, -1)


parts = st.one_of(
    st.none(), st.integers(-3, 2), st.just(Ellipsis),
    st.builds(slice, st.none() | st.integers(-5, 5), st.none() | st.integers(-5, 5), st.sampled_from([None, 1, 2, 3])),
)  # fmt: skip


@relaxed
@given(st.lists(parts, max_size=5), st.lists(st.integers(0, 4), max_size=4))
def test_indexing(index: list[Any], shape: list[int]) -> None:
    x = tensor(*shape)
    try:
        x[tuple(index)]
    except IndexError:  # out of range, too many, or more than one Ellipsis
        if index.count(Ellipsis) < 2:
            with pytest.raises(IndexError):
                result_info(operator.getitem, (info(x), tuple(index)), {})
    else:
        if index.count(Ellipsis) < 2:
            assert_known(operator.getitem, x, tuple(index))


@relaxed
@given(st.data())
def test_matrix_products(data: st.DataObject) -> None:
    one, two = data.draw(pairs())
    for target in (operator.matmul, torch.matmul, "matmul"):
        assert_known(target, tensor(*one, 2, 5), tensor(*two, 5, 3))
        assert_known(target, tensor(5), tensor(*two, 5, 3))
        assert_known(target, tensor(*one, 2, 5), tensor(5))
        assert_known(target, tensor(5), tensor(5))


@relaxed
@given(st.sampled_from([1, 2, 4]), st.integers(1, 4), st.integers(1, 5))
def test_attention_and_our_own_functions(groups: int, length: int, keys: int) -> None:
    query, key, value = tensor(2, 4, length, 6), tensor(2, groups, keys, 6), tensor(2, groups, keys, 3)
    assert_known(
        F.scaled_dot_product_attention, query, key, value, attn_mask=None, scale=0.3, enable_gqa=groups != 4
    )
    assert_known(functional.positions_from, 3, length, query)
    assert_known("scatter", key, 2, torch.zeros_like(key, dtype=torch.int64), torch.ones_like(key))
    assert_known(functional.constant, (1.0, 2.0), query)
    assert_known(functional.constant, (1, 2), query)
    assert_known(functional.rounded_to_bfloat16, query)


@relaxed
@given(st.data(), st.sampled_from(DTYPES))
def test_gather(data: st.DataObject, dtype: torch.dtype) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    index = torch.zeros([data.draw(st.integers(0, size)) for size in shape], dtype=torch.int64)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    for target in (torch.gather, "gather"):
        assert_known(target, tensor(*shape, dtype=dtype), dim, index)


@relaxed
@given(
    st.lists(st.integers(0, 3), max_size=2), st.integers(1, 3), st.booleans(), st.booleans(),
    st.sampled_from(FLOATS),
)  # fmt: skip
def test_products_with_experts(
    rest: list[int], choices: int, shared: bool, biased: bool, dtype: torch.dtype
) -> None:
    x = tensor(*rest, 1 if shared else choices, 6, dtype=dtype)
    bias = tensor(4, 5, dtype=dtype) if biased else None
    chosen = torch.zeros(*rest, choices, dtype=torch.int64)
    assert_known(functional.expert_linear, x, tensor(4, 5, 6, dtype=dtype), bias, chosen)


@relaxed
@given(st.sampled_from([1, 2, 4]), st.integers(1, 3), st.booleans(), st.booleans(), st.sampled_from(FLOATS))
def test_recurrences(groups: int, length: int, given: bool, masked: bool, dtype: torch.dtype) -> None:
    wide = torch.promote_types(dtype, torch.float32)
    real = tensor(2, length, dtype=torch.int64) if masked else None

    def state(*shape: int) -> Tensor | None:
        return tensor(*shape, dtype=wide) if given else None

    keys, values = tensor(2, groups, length, 6, dtype=dtype), tensor(2, 4, length, 5, dtype=dtype)
    assert_known(functional.linear_attention, keys, keys, values, values[..., 0], state(2, 4, 6, 5), real)
    x, b = tensor(2, length, 6, dtype=dtype), tensor(2, length, 3, dtype=dtype)
    assert_known(functional.selective_scan, x, x, tensor(6, 3, dtype=dtype), b, b, state(2, 6, 3), real)
    assert_known(functional.diagonal_recurrence, x, x, state(2, 6), real)


@relaxed
@given(
    st.integers(1, 3), st.integers(1, 70), st.integers(1, 2), st.booleans(), st.booleans(), st.booleans(),
    st.sampled_from(FLOATS),
)  # fmt: skip
def test_delta_rules(
    groups: int, tokens: int, repeats: int, per_channel: bool, started: bool, masked: bool, dtype: torch.dtype
) -> None:
    heads = groups * repeats
    query, value = tensor(2, groups, tokens, 4, dtype=dtype), tensor(2, heads, tokens, 3, dtype=dtype)
    decay = tensor(2, heads, tokens, *([4] if per_channel else []), dtype=torch.float32)
    state = tensor(2, heads, 4, 3, dtype=torch.promote_types(dtype, torch.float32)) if started else None
    real = tensor(2, tokens, dtype=torch.int64) if masked else None
    assert_known(functional.gated_delta_rule, query, query, value, -decay, value[..., 0], state, real)


@relaxed
@given(st.integers(1, 70), st.booleans(), st.booleans(), st.sampled_from(FLOATS))
def test_generalized_delta_rules(tokens: int, started: bool, masked: bool, dtype: torch.dtype) -> None:
    query, value = tensor(2, 3, tokens, 4, dtype=dtype), tensor(2, 3, tokens, 5, dtype=dtype)
    state = tensor(2, 3, 4, 5, dtype=torch.promote_types(dtype, torch.float32)) if started else None
    real = tensor(2, tokens, dtype=torch.int64) if masked else None
    decay = -tensor(2, 3, tokens, 4, dtype=torch.float32)
    assert_known(functional.generalized_delta_rule, query, query, value, decay, query, query, state, real)


def test_sizes_are_plain_numbers() -> None:
    assert result_info(size, (info(X), -1), {}) == 6
    assert result_info(operator.floordiv, (-7, 2), {}) == -4
    assert result_info(operator.neg, (7,), {}) == -7
    assert result_info(operator.mul, (7, 2), {}) == 14
    assert result_info(operator.mod, (7, 4), {}) == 3  # without a rule


@relaxed
@given(st.data(), st.integers(1, 2), st.sampled_from(FLOATS))
def test_convolutions(data: Any, axes: int, dtype: torch.dtype) -> None:
    def each(low: int, high: int) -> Any:
        one = st.integers(low, high)
        return data.draw(one | st.tuples(*[one] * axes))

    groups = data.draw(st.integers(1, 2))
    kernel = data.draw(st.tuples(*[st.integers(1, 3)] * axes))
    sizes = data.draw(st.tuples(*[st.integers(5, 9)] * axes))
    x, weight = tensor(2, 2 * groups, *sizes, dtype=dtype), tensor(4, 2, *kernel, dtype=dtype)
    bias = data.draw(st.sampled_from([None, tensor(4, dtype=dtype)]))
    options = {"stride": each(1, 3), "padding": each(0, 2), "dilation": each(1, 2), "groups": groups}
    assert_known((F.conv1d, F.conv2d)[axes - 1], x, weight, bias, **options)


@pytest.mark.parametrize("dtype", FLOATS)
def test_words(dtype: torch.dtype) -> None:
    gates = [tuple(tensor(*shape, dtype=dtype) for _ in range(8)) for shape in ((4, 6), (4, 4))]
    parts = [
        tensor(2, 5, 6, dtype=dtype),
        tensor(2, dtype=torch.int64),
        *gates,
        (tensor(4, dtype=dtype),) * 16,
    ]
    expected = functional.lstm(*parts)  # type: ignore[arg-type]
    infos = [tuple(map(info, part)) if isinstance(part, tuple) else info(part) for part in parts]
    assert result_info(functional.lstm, tuple(infos), {}) == info(expected)
    with pytest.raises(ValueError, match="an LSTM of width 6 cannot read inputs of shape"):
        result_info(functional.lstm, (info(tensor(2, 5, 7)), *infos[1:]), {})
    numbers = tensor(2, 5, dtype=torch.int64)
    assert functional.most_numbered(numbers) == 1
    assert functional.most_numbered(numbers.to("meta")) == 5
    assert result_info(functional.most_numbered, (info(numbers.repeat(1, 5)),), {}) == 3  # one of eight


def test_a_function_without_a_rule_runs_on_meta_tensors() -> None:
    for target in (torch.einsum, torch.roll, "masked_fill", "new_ones", torch.tril):
        assert target not in operations()
    assert_known(torch.einsum, "btc,bsc->bts", X, X)
    assert_known("masked_fill", X, X > 0, 0.0)
    assert_known(torch.tril, X)
    assert result_info(torch.unbind, (info(X), 0), {}) == (TensorInfo((3, 6), torch.float32),) * 2
    assert result_info(torch.einsum, ("i,j->ij", info(tensor(3)), info(tensor(4))), {}).shape == (3, 4)


def _is_fused(target: Any) -> bool:
    return str(getattr(target, "__module__", "")).startswith("exporters.graph.fusing")


def test_every_rule_is_tested_here() -> None:
    named = {*ARITHMETIC, *DIVISIONS, *POWERS, *COMPARISONS, *SAME, *FLOATING, operator.floordiv, torch.maximum,
             torch.minimum, operator.and_, operator.or_, torch.where, F.gelu, F.silu, F.elu, F.softplus, F.dropout, F.layer_norm, F.rms_norm,
             F.normalize, F.softmax, "softmax", F.linear, F.embedding, F.conv1d, F.conv2d, "to", "type", "float", torch.clamp, "clamp", torch.sum, "sum",
             torch.topk, "topk", torch.amax, "amax", torch.cumsum, "cumsum", torch.mean, "mean", torch.transpose, "transpose", torch.flatten, "flatten",
             torch.squeeze, "squeeze", torch.unsqueeze, "unsqueeze", torch.permute, "permute", "view", "reshape",
             torch.reshape, "chunk", torch.chunk, "split", torch.split, "narrow", torch.narrow, torch.cat, torch.stack, "expand", torch.unflatten, "unflatten", operator.getitem,
             operator.matmul, torch.matmul, "matmul", F.scaled_dot_product_attention, functional.positions_from,
             functional.constant, functional.rounded_to_bfloat16, size, "scatter", torch.gather, "gather", functional.expert_linear,
             functional.linear_attention, functional.selective_scan, functional.diagonal_recurrence, functional.gated_delta_rule,
             functional.generalized_delta_rule, functional.lstm, functional.most_numbered}  # fmt: skip
    assert named == {target for target in operations() if not _is_fused(target)}


CHOSEN = torch.zeros(2, 3, dtype=torch.int64)
KEYS, VALUES = tensor(2, 2, 3, 6), tensor(2, 4, 3, 5)
HEADS = tensor(2, 4, 3, 6)
GATE = HEADS[..., 0]
IMPOSSIBLE: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
    (operator.add, (X, tensor(2)), ValueError, r"shapes .* do not broadcast"),
    (operator.matmul, (X, X), ValueError, "cannot multiply"),
    (operator.matmul, (X, tensor(6, 2, dtype=torch.float16)), ValueError, "cannot multiply"),
    (F.linear, (X, tensor(4, 5)), ValueError, "a linear layer expects 5 input features, got 6"),
    (F.conv1d, (X, tensor(4, 2, 3)), ValueError, "a convolution expects 2 input channels, got 3"),
    (F.conv1d, (X, tensor(4, 3, 7)), ValueError, r"of shape \(4, 3, 7\) does not fit an input"),
    (F.conv2d, (tensor(6, 6), tensor(4, 3, 2, 2)), ValueError, "expects batch, channels and 2 axes, got 2 axes"),
    ("reshape", (X, 5, -1), ValueError, r"cannot reshape \(2, 3, 6\) to \(5, -1\)"),
    ("view", (X, 36, 2), ValueError, r"cannot reshape \(2, 3, 6\) to \(36, 2\)"),
    ("view", (X, 0, -1), ValueError, r"cannot reshape \(2, 3, 6\) to \(0, -1\)"),
    ("reshape", (X, -1, -1), ValueError, r"cannot reshape \(2, 3, 6\) to \(-1, -1\)"),
    ("unflatten", (X, -1, (4, -1)), ValueError, r"cannot unflatten an axis of size 6 to \(4, -1\)"),
    ("expand", (X, 2, 4, 6), ValueError, r"cannot expand \(2, 3, 6\) to \(2, 4, 6\)"),
    ("expand", (X, 6), ValueError, "cannot expand"),
    ("expand", (X, -1, 2, 3, 6), ValueError, "cannot expand"),
    ("permute", (X, 0, 1), ValueError, r"\(0, 1\) is not a permutation of 3 axes"),
    ("permute", (X, 0, 1, 1), ValueError, "is not a permutation of 3 axes"),
    ("transpose", (X, 0, 3), IndexError, "axis 3 is out of range for a tensor with 3 axes"),
    ("flatten", (X, -4), IndexError, "axis -4 is out of range for a tensor with 3 axes"),
    ("sum", (X, 3), IndexError, "axis 3 is out of range for a tensor with 3 axes"),
    ("unsqueeze", (X, 4), IndexError, "axis 4 is out of range for a tensor with 4 axes"),
    ("unsqueeze", (X, -5), IndexError, "axis -5 is out of range for a tensor with 4 axes"),
    (torch.cat, ([X, tensor(2, 3, 5)], 1), ValueError, r"cannot concatenate shapes \[.*\] on axis 1"),
    (torch.cat, ([X, tensor(2, 3)], 0), ValueError, r"cannot concatenate shapes \[.*\] on axis 0"),
    (torch.split, (X, [1, 1], 1), ValueError, r"cannot split an axis of size 3 into \[1, 1\]"),
    (torch.stack, ([X, tensor(2, 3, 5)],), ValueError, "cannot stack shapes"),
    (F.scaled_dot_product_attention, (tensor(1, 1, 2, 3), tensor(1, 1, 4, 5), tensor(1, 1, 4, 5)), ValueError, "attention cannot combine"),
    (operator.getitem, (X, slice(None, None, -1)), ValueError, "slice steps must be positive"),
    (operator.getitem, (X, X), TypeError, "use F.embedding to look up rows"),
    (functional.gated_delta_rule, (HEADS[:, :3], HEADS[:, :3], HEADS, GATE, GATE, None, None), ValueError, r"a delta rule cannot combine .* shapes \(2, 3, 3, 6\), \(2, 3, 3, 6\), \(2, 4, 3, 6\)"),
    (functional.gated_delta_rule, (HEADS, HEADS[..., :5], HEADS, GATE, GATE, None, None), ValueError, "a delta rule cannot combine"),
    (functional.gated_delta_rule, (HEADS, HEADS, HEADS, HEADS[..., :5], GATE, None, None), ValueError, "a delta rule cannot combine"),
    (functional.generalized_delta_rule, (HEADS, HEADS, HEADS, HEADS, HEADS, HEADS[..., :5], None, None), ValueError, r"a generalized delta rule cannot combine .* \(2, 4, 3, 6\), \(2, 4, 3, 5\)"),
    (functional.generalized_delta_rule, (HEADS, HEADS, HEADS[:, :, 1:], HEADS, HEADS, HEADS, None, None), ValueError, "a generalized delta rule cannot combine"),
    (functional.generalized_delta_rule, (HEADS, HEADS, HEADS, HEADS, HEADS, HEADS, tensor(2, 4, 5, 6), None), ValueError, "a delta rule expects a state"),
    (functional.gated_delta_rule, (HEADS, HEADS, HEADS, GATE, GATE, tensor(2, 4, 5, 6), None), ValueError, r"a delta rule expects a state of shape \(2, 4, 6, 6\), got \(2, 4, 5, 6\)"),
    (functional.expert_linear, (X, tensor(4, 5, 7), None, CHOSEN), ValueError, "a linear layer of experts expects 7 input features, got 6"),
    (functional.expert_linear, (X, tensor(4, 5, 6), None, CHOSEN[:1]), ValueError, r"rows of shape \(2, 3, 6\) do not fit chosen experts of shape \(1, 3\)"),
    (functional.linear_attention, (KEYS, KEYS[..., 1:], VALUES, VALUES[..., 0], None, None), ValueError,
     r"linear attention cannot combine queries, keys and values of shapes \(2, 2, 3, 6\), \(2, 2, 3, 5\), \(2, 4, 3, 5\)"),
    (functional.linear_attention, (KEYS[:, :, 1:], KEYS[:, :, 1:], VALUES, VALUES[..., 0], None, None), ValueError, "linear attention cannot combine"),
    (functional.linear_attention, (KEYS, KEYS, VALUES[:, 1:], VALUES[:, 1:, :, 0], None, None), ValueError, "linear attention cannot combine"),
    (functional.linear_attention, (KEYS, KEYS, VALUES, VALUES[..., 0], tensor(2, 4, 5, 6), None), ValueError,
     r"linear attention expects a state of shape \(2, 4, 6, 5\) and torch.float32, got \(2, 4, 5, 6\) and torch.float32"),
    (functional.selective_scan, (X, X[..., 1:], X[0, :, :3].T, KEYS[:, 0], KEYS[:, 0], None, None), ValueError,
     r"a selective scan of 3 channels cannot combine x and delta of shapes \(2, 3, 6\) and \(2, 3, 5\)"),
    (functional.selective_scan, (X, X, tensor(6, 3), X[..., :3], X[..., :4], None, None), ValueError,
     r"a selective scan expects b and c of shape \(2, 3, 3\), got \(2, 3, 4\)"),
    (functional.selective_scan, (X, X, tensor(6, 3), X[..., :3], X[..., :3], tensor(2, 3, 6), None), ValueError,
     r"a selective scan expects a state of shape \(2, 6, 3\) and torch.float32, got \(2, 3, 6\)"),
    (functional.diagonal_recurrence, (X, X[..., 1:], None, None), ValueError, r"a recurrence expects decays of shape \(2, 3, 6\), got \(2, 3, 5\)"),
    (functional.diagonal_recurrence, (X, X, tensor(2, 5), None), ValueError, r"a recurrence expects a state of shape \(2, 6\) and torch.float32, got \(2, 5\)"),
    (functional.expert_linear, (X, tensor(4, 5, 6), None, CHOSEN[:, :2]), ValueError, r"rows of shape \(2, 3, 6\) do not fit chosen experts of shape \(2, 2\)"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "args", "error", "message"), IMPOSSIBLE)
def test_inputs_that_torch_refuses_are_refused(
    target: Any, args: tuple[Any, ...], error: Any, message: str
) -> None:
    with pytest.raises((RuntimeError, ValueError, IndexError, TypeError)):
        plain(target)(*args)
    with pytest.raises(error, match=message):
        result_info(target, tuple(info(arg) for arg in args), {})


def test_keys_without_values_are_refused_although_torch_reads_on() -> None:
    given = (tensor(1, 1, 2, 3), tensor(1, 1, 4, 3), tensor(1, 1, 5, 3))
    with pytest.raises(ValueError, match="attention cannot combine"):
        result_info(F.scaled_dot_product_attention, tuple(map(info, given)), {})


def test_decays_of_some_heads_are_refused_although_torch_repeats_them() -> None:
    given = (KEYS, KEYS, VALUES, VALUES[:, :2, :, 0])
    with pytest.raises(ValueError, match=r"decays of shape \(2, 4, 3\), got \(2, 2, 3\)"):
        result_info(functional.linear_attention, (*map(info, given), None, None), {})


@pytest.mark.parametrize(
    ("target", "args", "message"),
    [
        (operator.truediv, (7, 2), "dividing two sizes must give an integer"),
        (operator.mul, (7, 0.5), "mul of a size must give an integer"),
        (operator.pow, (7, 0.5), "pow of a size must give an integer"),
        (operator.lt, (7, 2), "sizes cannot be compared: they differ between calls"),
        (F.conv1d, (X, tensor(4, 3, 3), None, 1, "same"), "string padding is not traced"),
    ],
)
def test_sizes_stay_whole_and_are_not_compared(target: Any, args: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        result_info(target, args, {})
