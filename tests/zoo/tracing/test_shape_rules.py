"""Shapes by the rules of operations, without torch's own rules for the meta device."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.zoo.tiny import gpt2
from zoo.builder import assemble
from zoo.checks import check_shapes
from zoo.checks.shape_rules import ShapeRules
from zoo.functional.numbered import most_numbered

COMPILER = ("sympy", "torch._dynamo", "torch.fx.experimental.symbolic_shapes")

CHECK = """
import sys
from specs.language.load import load
from zoo.builder import assemble
from zoo.checks import check_shapes
spec = load(sys.argv[1])
assert check_shapes(assemble(spec), spec).passed
print(*(name for name in sys.argv[2:] if name in sys.modules))
"""


@pytest.mark.parametrize("preset", ["bert-base", pytest.param("qwen2-vl-2b", marks=pytest.mark.slow)])
def test_a_check_does_not_import_the_compiler(preset: str) -> None:
    command = [sys.executable, "-c", CHECK, preset, *COMPILER]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []


class Views(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).view(x.shape)


class ViewsOfSums(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x.transpose(1, 2) * 2 + 1).exp().view(x.shape)


class Keywords(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cumsum(x, dim=1, dtype=torch.float64).to(x.dtype)


class Misfits(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((x, x[:, :1, :1]), dim=2)


def problems(layer: nn.Module) -> tuple[str, ...]:
    model: Any = assemble(gpt2())
    model.decoder.blocks[1].feed_forward = layer
    return check_shapes(model, gpt2()).problems


@pytest.mark.parametrize("layer", [Views, ViewsOfSums])
def test_a_view_that_memory_does_not_allow_fails(layer: type[nn.Module]) -> None:
    (problem,) = problems(layer())
    assert "RuntimeError: Cannot view a tensor" in problem or "view size is not compatible" in problem


def test_a_call_that_no_rule_takes_runs_in_torch() -> None:
    assert problems(Keywords()) == ()


def test_a_call_that_torch_rejects_has_the_error_of_torch() -> None:
    (problem,) = problems(Misfits())
    assert "Sizes of tensors must match except in dimension 2" in problem
    assert problem.endswith("return torch.cat((x, x[:, :1, :1]), dim=2)")


@pytest.mark.parametrize(
    ("compute", "dtype"),
    [
        (lambda x: 1 - x, torch.float16),
        (lambda x: 2.0 / x, torch.float16),
        (lambda x: x // 2, torch.float16),
        (lambda x: (x > 0) & (x < 1), torch.bool),
        (lambda x: x.sum(-1, keepdim=True) * x, torch.float16),
        (lambda x: torch.where(x == 0, x, 0.0), torch.float16),
        (lambda x: x.float().softmax(dim=-1) @ x.float().mT, torch.float32),
    ],
)  # fmt: skip
def test_operators_have_the_shapes_and_dtypes_of_torch(compute: Any, dtype: torch.dtype) -> None:
    x = torch.ones(2, 3, 3, dtype=torch.float16)
    with ShapeRules():
        result = compute(x.to("meta"))
    assert (result.shape, result.dtype, result.device.type) == (compute(x).shape, dtype, "meta")
    assert compute(x).dtype == dtype


def test_a_size_that_depends_on_values_is_that_of_the_function() -> None:
    with ShapeRules():
        assert most_numbered(torch.empty(2, 9, dtype=torch.int64, device="meta")) == 9


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: nn.LayerNorm(7, device=x.device)(x),
        lambda x: F.rms_norm(x, (8,), x.new_ones(7)),
        lambda x: F.linear(x, x.new_ones(5, 8), x.new_ones(4)),
        lambda x: x.cumsum(4),
        lambda x: x.long().div_(2),
    ],
)
def test_a_call_that_fails_on_values_fails_without_them(compute: Any) -> None:
    for device in ("cpu", "meta"):
        with ShapeRules(), torch.no_grad(), pytest.raises((RuntimeError, IndexError)):
            compute(torch.ones(4, 2, 8, device=device))


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x * (torch.zeros(2) + 1)[0].item(),
        lambda x: x if x == None else x * 1,  # noqa: E711
        lambda x: x.topk(3).indices,
        lambda x: (x * 1j).abs(),
        lambda x: x.half().add_(x),
        lambda x: torch.autograd.grad(x.requires_grad_().square().sum(), x)[0],
    ],
)
def test_a_call_that_runs_on_values_runs_without_them(compute: Any) -> None:
    x = torch.ones(4, 2, 8)
    with ShapeRules():
        result = compute(x.to("meta"))
    assert (result.shape, result.dtype) == (compute(x).shape, compute(x).dtype)
