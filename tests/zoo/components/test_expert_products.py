"""Products with the matrices of chosen experts, against products with all of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from specs.kinds.mixture import Mixture
from zoo.components.mixture import Mixture as MixtureModule
from zoo.context import BuildContext
from zoo.functional import expert_linear

relaxed = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))

EXPERTS, WIDTH, ROWS = 5, 6, 4


def drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def with_all(x: Tensor, weight: Tensor, bias: Tensor | None, experts: Tensor) -> Tensor:
    """Every row times every matrix, of which the chosen results are taken."""
    every = torch.einsum("...kd,end->...ken", x, weight) + (0 if bias is None else bias)
    every = every.expand(*experts.shape, *every.shape[-2:])
    taken = experts[..., None, None].expand(*experts.shape, 1, every.shape[-1])
    return every.gather(-2, taken).squeeze(-2)


@st.composite
def choices(draw: st.DrawFn) -> Tensor:
    """Chosen experts, ... K: any shape, of any number of different experts, none included."""
    shape = [*draw(st.lists(st.integers(0, 4), max_size=2)), draw(st.integers(1, 6))]
    used = draw(st.lists(st.integers(0, EXPERTS - 1), min_size=1, max_size=EXPERTS))
    count = torch.Size(shape).numel()
    picks = draw(st.lists(st.sampled_from(used), min_size=count, max_size=count))
    return torch.tensor(picks, dtype=torch.int64).view(shape)


@relaxed
@given(choices(), st.booleans(), st.booleans())
@example(torch.full((3, 2), 4), True, True)  # all rows choose one expert
@example(torch.zeros(0, 3, 2, dtype=torch.int64), True, True)  # there are no rows
@example(torch.arange(EXPERTS).expand(2, 3, -1), True, False)  # all experts are chosen
def test_a_row_is_multiplied_by_the_matrix_of_its_expert(experts: Tensor, shared: bool, biased: bool) -> None:
    x = drawn(*experts.shape[:-1], 1 if shared else experts.shape[-1], WIDTH).requires_grad_()
    weight = drawn(EXPERTS, ROWS, WIDTH, seed=1).requires_grad_()
    bias = drawn(EXPERTS, ROWS, seed=2).requires_grad_() if biased else None
    got, expected = (function(x, weight, bias, experts) for function in (expert_linear, with_all))
    assert got.shape == (*experts.shape, ROWS)
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)
    trained = [x, weight, *([] if bias is None else [bias])]
    loss = drawn(*got.shape, seed=3)
    for one, other in zip(
        *(torch.autograd.grad((each * loss).sum(), trained) for each in (got, expected)), strict=True
    ):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 3])
def test_gradients_of_both_orders_are_those_of_differences(rows: int) -> None:
    experts = torch.tensor([[0, 3, 3], [1, 3, 0]])
    given = [
        drawn(2, rows, 3, dtype=torch.float64),
        drawn(4, 2, 3, dtype=torch.float64, seed=1),
        drawn(4, 2, dtype=torch.float64),
    ]
    given = [each.requires_grad_() for each in given]
    call = lambda x, weight, bias: expert_linear(x, weight, bias, experts)  # noqa: E731
    assert torch.autograd.gradcheck(call, given)
    assert torch.autograd.gradgradcheck(call, given)


@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_what_is_frozen_gets_no_gradient(frozen: int) -> None:
    given: Any = [drawn(2, 3, WIDTH), drawn(EXPERTS, ROWS, WIDTH), drawn(EXPERTS, ROWS)]
    for place, each in enumerate(given):
        each.requires_grad_(place != frozen)
    expert_linear(given[0], given[1], given[2], torch.tensor([[0, 1, 1], [4, 4, 4]])).sum().backward()
    assert [each.grad is None for each in given] == [place == frozen for place in range(3)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True], ids=["", "autocast"])
def test_half_precision_is_close(dtype: torch.dtype, autocast: bool) -> None:
    given, experts = (
        [drawn(7, 2, WIDTH), drawn(EXPERTS, ROWS, WIDTH, seed=1), drawn(EXPERTS, ROWS, seed=2)],
        drawn(7, 2).argsort(0) % EXPERTS,
    )
    with torch.autocast("cpu", dtype, enabled=autocast):
        x, weight, bias = (each if autocast else each.to(dtype) for each in given)
        got = expert_linear(x, weight, bias, experts)
    assert got.dtype == dtype
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(
        got.float(), with_all(given[0], given[1], given[2], experts), atol=8 * unit, rtol=4 * unit
    )


@pytest.mark.parametrize(
    ("x", "experts"), [((2, 3, 6), (3, 3)), ((2, 2, 6), (2, 3)), ((6,), (1,)), ((4, 6), (2, 4))]
)
def test_rows_that_do_not_fit_the_choices_are_an_error(x: tuple[int, ...], experts: tuple[int, ...]) -> None:
    with pytest.raises((ValueError, IndexError)):
        expert_linear(drawn(*x), drawn(EXPERTS, ROWS, 6), None, torch.zeros(experts, dtype=torch.int64))


# --------------------------------------------------------------------------------------- a mixture in compilers


GATED = {"kind": "gated", "hidden": 10, "activation": "silu"}
SPEC = Mixture.model_validate({"experts": EXPERTS, "top_k": 2, "expert": GATED, "shared": GATED})


def mixture(spec: Mixture = SPEC) -> Any:
    module = MixtureModule(spec, BuildContext(WIDTH, None, causal=True, cross=False))
    for place, parameter in enumerate(module.parameters()):
        nn.init.normal_(parameter, 0.0, 0.3, generator=torch.Generator().manual_seed(place))
    return module


def gradients(module: Any, x: Tensor) -> list[Tensor]:
    result = module(x)
    return [result, *torch.autograd.grad((result**2).sum(), [*module.parameters()])]


@pytest.mark.slow  # the compiler takes seconds to load
def test_a_mixture_compiles_as_one_graph_and_trains() -> None:
    module = mixture()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for length in (4, 7):
        x = drawn(2, length, WIDTH, seed=length)
        for got, expected in zip(gradients(compiled, x), gradients(module, x), strict=True):
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_a_mixture_is_exported_with_symbolic_sizes() -> None:
    module = mixture().eval()
    sizes = {"x": {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}}
    program = torch.export.export(module, (drawn(2, 4, WIDTH),), dynamic_shapes=sizes)
    for shape in ((2, 4), (3, 9)):
        x = drawn(*shape, WIDTH, seed=5)
        torch.testing.assert_close(program.module()(x), module(x))


def test_the_flop_counter_counts_the_chosen_experts() -> None:
    module, x = mixture(), drawn(2, 4, WIDTH)
    with FlopCounterMode(display=False) as counter:
        module(x).sum().backward()
    matrix, choices, counts = 2 * WIDTH * 10, 8 * 2, counter.flop_counts["Global"]
    assert counts[torch.ops.zoo.expert_product] == choices * (3 + 1) * matrix  # x gets no gradient
    assert counts[torch.ops.zoo.expert_weight_gradient] == choices * 3 * matrix


def test_top_k_of_all_experts_is_their_weighted_sum() -> None:
    spec = Mixture.model_validate({"experts": 3, "top_k": 3, "expert": {**GATED, "bias": False}})
    module, x = mixture(spec), drawn(2, 4, WIDTH)
    weights = torch.softmax(module.router(x), -1)  # B T E
    gate, up, down = module.experts.gate.weight, module.experts.up.weight, module.experts.down.weight
    hidden = F.silu(torch.einsum("btd,ehd->bteh", x, gate)) * torch.einsum("btd,ehd->bteh", x, up)
    expected = torch.einsum("bteh,edh,bte->btd", hidden, down, weights)
    torch.testing.assert_close(module(x), expected, atol=1e-5, rtol=1e-5)
