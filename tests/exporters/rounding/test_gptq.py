"""Rounding for products, against the method as its paper states it, and against rounding to nearest."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from exporters.rounding.gptq import DAMPING, FactoredProducts, check_finite, gptq, products_of
from exporters.rounding.scales import searched
from specs.base.errors import UserError
from zoo.weights.blocks import Blocks

SYMMETRIC, ASYMMETRIC = Blocks(4, 32), Blocks(4, 32, symmetric=False)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def correlated(tokens: int, width: int, seed: int = 1) -> Tensor:
    """Inputs that mostly lie in a few directions, and some of which are far larger than others."""
    few = drawn(tokens, width // 8, seed=seed) @ drawn(width // 8, width, seed=seed + 1)
    sizes = torch.linspace(-1, 2, width).exp()
    return (few + 0.3 * drawn(tokens, width, seed=seed + 2)) * sizes


def as_published(blocks: Blocks, rows: Tensor, inputs: Tensor) -> Tensor:
    """The codes by optimal brain surgery, one column after another, with the inverse taken anew each time, in float64."""
    products = (inputs.T @ inputs).double()
    importance = products.diagonal().clone()
    products += DAMPING * importance.mean() * torch.eye(len(products), dtype=torch.float64)
    found = searched(blocks, rows, importance.float(), torch.float32)
    size = blocks.size_in(rows.shape[1])
    left, codes = rows.double(), torch.zeros_like(rows)
    order = importance.argsort(descending=True).tolist()
    for place, column in enumerate(order):
        rest = order[place:]
        inverse = torch.linalg.inv(products[rest][:, rest])
        scale, zero = found.scales[:, column // size].double(), found.zeros[:, column // size].double()
        code = (left[:, column] / scale + zero).round().clamp(0, blocks.last)
        codes[:, column] = code
        error = (left[:, column] - (code - zero) * scale) / inverse[0, 0]
        left[:, rest] -= error[:, None] * inverse[0]
    return codes


@pytest.mark.parametrize("blocks", [SYMMETRIC, ASYMMETRIC, Blocks(4, None), Blocks(8, 32)])
def test_codes_are_those_of_the_published_method(blocks: Blocks) -> None:
    rows, inputs = drawn(6, 160), correlated(400, 160)
    found = gptq(blocks, rows, FactoredProducts.of(inputs.T @ inputs))
    codes = found.codes.flatten(1)[:, :160]
    same = (codes == as_published(blocks, rows, inputs)).float().mean()
    assert same > 0.99  # the rest lies between two codes, and float32 decides


@pytest.mark.parametrize("blocks", [SYMMETRIC, ASYMMETRIC])
def test_products_change_far_less_than_by_rounding_to_nearest(blocks: Blocks) -> None:
    rows, inputs, others = drawn(64, 256), correlated(600, 256), correlated(600, 256)
    found = blocks.restore(gptq(blocks, rows, FactoredProducts.of(inputs.T @ inputs)), 256)
    nearest = blocks.restore(blocks.quantize(rows), 256)
    errors = [((weight - rows) @ others.T).square().mean() for weight in (found, nearest)]
    assert errors[0] < 0.4 * errors[1]


def test_unrelated_inputs_leave_the_nearest_codes() -> None:
    rows, each = drawn(8, 96), torch.linspace(0.5, 2, 96)
    found, nearest = (
        gptq(ASYMMETRIC, rows, FactoredProducts.of(each.diag())),
        searched(ASYMMETRIC, rows, each, torch.float32),
    )
    assert torch.equal(found.codes, nearest.codes)


@pytest.mark.parametrize("silent", [slice(3, 4), slice(32, 64), slice(None)])
def test_inputs_that_are_always_0(silent: slice) -> None:
    rows, inputs = drawn(4, 96), correlated(200, 96)
    inputs[:, silent] = 0
    found = ASYMMETRIC.restore(gptq(ASYMMETRIC, rows, FactoredProducts.of(inputs.T @ inputs)), 96)
    assert torch.isfinite(found).all()
    assert (found - rows).abs().max() < 1


@pytest.mark.parametrize("size", [2.0**-80, 2.0**70])
def test_inputs_of_any_size_choose_the_same_codes(size: float) -> None:
    rows, inputs = drawn(4, 64), correlated(200, 64)
    codes = [
        gptq(SYMMETRIC, rows, FactoredProducts.of(products_of(x))).codes for x in (inputs, inputs * size)
    ]
    assert torch.equal(*codes)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_inputs_that_are_no_numbers_are_named(value: float) -> None:
    inputs = drawn(4, 64)
    inputs[1, 3] = value
    with pytest.raises(UserError, match="layer has inputs that are NaN or infinite in calibration"):
        check_finite(inputs, "layer")


@pytest.mark.slow
@given(
    st.sampled_from([SYMMETRIC, ASYMMETRIC, Blocks(4, None), Blocks(8, 128)]),
    st.integers(1, 6),
    st.integers(1, 150),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_searched_scales_are_never_worse(
    blocks: Blocks, count: int, width: int, seed: int, weighed: bool
) -> None:
    rows = drawn(count, width, seed=seed)
    rows[:, 0] *= 8  # one that reaches further than all others
    importance = drawn(width, seed=seed + 1).square() if weighed else None

    def error(values: Tensor) -> Tensor:
        return ((values - rows).square() * (1 if importance is None else importance)).sum()

    found = blocks.restore(searched(blocks, rows, importance, torch.float32), width)
    nearest = blocks.restore(blocks.quantize(rows), width)
    assert error(found) <= error(nearest) * (1 + 1e-5)


def test_few_inputs_do_not_decide_how_columns_compensate() -> None:
    rows, inputs, others = drawn(64, 256), drawn(128, 256, seed=1), drawn(600, 256, seed=2)

    def error(products: Tensor) -> float:
        found = SYMMETRIC.restore(gptq(SYMMETRIC, rows, FactoredProducts.of(products)), 256)
        return float(((found - rows) @ others.T).square().mean())

    nearest = SYMMETRIC.restore(SYMMETRIC.quantize(rows), 256)
    unaided = float(((nearest - rows) @ others.T).square().mean())
    assert error(inputs.T @ inputs) > 2 * unaided
    assert error(products_of(inputs)) < unaided


def test_many_inputs_are_not_shrunk() -> None:
    inputs = correlated(4000, 256)
    plain, found = inputs.T @ inputs, products_of(inputs)
    found = found * (plain[0, 0] / found[0, 0])
    # Processors add in different orders: a few units in the last place.
    torch.testing.assert_close(found.diagonal(), plain.diagonal(), rtol=1e-6, atol=0)
    assert (found - plain).norm() < 0.02 * plain.norm()
    inputs[:, 5] = 0
    assert products_of(inputs)[5].abs().max() == 0


def test_products_of_no_inputs_are_zero() -> None:
    assert products_of(torch.empty(0, 8)).equal(torch.zeros(8, 8))
