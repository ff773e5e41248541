"""Experts are rounded for the tokens that choose them, and read one at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from exporters.rounding.calibrated_weights import CalibratedWeights, Rounding
from exporters.rounding.experts import RoundedExperts
from exporters.rounding.gptq import FactoredProducts, gptq, products_of
from specs.kinds.mixture import Mixture
from tests.exporters.rounding.test_gptq import correlated, drawn
from zoo.context import BuildContext
from zoo.registry import build_component
from zoo.weights.blocks import Blocks
from zoo.weights.source import WeightSource

BLOCKS = Blocks(4, 32)
WIDTH, HIDDEN, EXPERTS, CHOSEN = 64, 32, 4, 2


class _Held(WeightSource):
    """Weights in memory."""

    description = "held"

    def __init__(self, weights: dict[str, Tensor]) -> None:
        self._weights = weights

    def pieces(self, name: str) -> Any:
        yield from self._weights[name].flatten().split(1000)


def experts(*, bias: bool) -> Any:
    spec = Mixture.model_validate(
        {"experts": EXPERTS, "top_k": CHOSEN,
         "expert": {"kind": "gated", "hidden": HIDDEN, "activation": "silu", "bias": bias}}
    )  # fmt: skip
    with torch.device("meta"):
        module: Any = build_component(spec, BuildContext(WIDTH, None, causal=True, cross=False))
    return module.experts


def run(tmp_path: Path, x: Tensor, chosen: Tensor, *, bias: bool, real: Tensor | None = None) -> Any:
    module = experts(bias=bias)
    weights = {
        name: drawn(*each.shape, seed=place) for place, (name, each) in enumerate(module.named_parameters())
    }
    tmp_path.mkdir(exist_ok=True)
    found = CalibratedWeights(_Held(weights), tmp_path)
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    roundings = {name: Rounding(BLOCKS, torch.float32) for name, each in weights.items() if each.ndim == 3}
    shares = torch.full(chosen.shape, 1 / CHOSEN)
    result = RoundedExperts(module, found, roundings, names).run(x, shares, chosen, real)
    again = RoundedExperts(module, found, roundings, names).run(x, shares, chosen, real)
    assert torch.equal(result, again)  # from the chosen codes, the second time
    return module, weights, found, result


def stored(found: CalibratedWeights, name: str, shape: torch.Size) -> Tensor:
    values = found.restored(name, shape[-1])
    assert values is not None
    return values.view(shape)


@pytest.mark.parametrize("bias", [False, True])
def test_each_expert_is_rounded_for_its_own_tokens(bias: bool, tmp_path: Path) -> None:
    x = correlated(600, WIDTH).view(2, 300, WIDTH)
    chosen = torch.stack([torch.arange(600) % 3, torch.full((600,), 3)], -1).view(2, 300, CHOSEN)
    module, weights, found, result = run(tmp_path, x, chosen, bias=bias)
    up = stored(found, "up.weight", weights["up.weight"].shape)
    for expert in range(EXPERTS):
        rows = x[(chosen == expert).any(-1)]
        codes = gptq(BLOCKS, weights["up.weight"][expert], FactoredProducts.of(products_of(rows)))
        assert torch.equal(up[expert], BLOCKS.restore(codes, WIDTH))
    materialized: dict[str, Tensor] = {name: torch.nn.Parameter(stored(found, name, each.shape) if each.ndim == 3 else each)
                    for name, each in weights.items()}  # fmt: skip
    expected = torch.func.functional_call(
        module, materialized, (x, torch.full(chosen.shape, 1 / CHOSEN), chosen)
    )
    torch.testing.assert_close(result, expected, atol=1e-3, rtol=1e-4)


def test_padding_neither_calibrates_nor_gives_anything(tmp_path: Path) -> None:
    x, chosen = drawn(1, 40, WIDTH), torch.tensor([0, 1]).expand(1, 40, CHOSEN)
    real = torch.arange(40)[None] < 30
    *_, found, result = run(tmp_path / "padded", x, chosen, bias=False, real=real)
    *_, shorter, alone = run(tmp_path / "alone", x[:, :30], chosen[:, :30], bias=False)
    assert torch.equal(result[:, :30], alone)
    assert not result[:, 30:].any()
    assert torch.equal(found.restored("down.weight", HIDDEN), shorter.restored("down.weight", HIDDEN))


def test_experts_without_tokens_are_rounded_to_their_scales(tmp_path: Path) -> None:
    x, chosen = drawn(1, 20, WIDTH), torch.tensor([0, 1]).expand(1, 20, CHOSEN)
    _, weights, found, _ = run(tmp_path, x, chosen, bias=False)
    up = stored(found, "up.weight", weights["up.weight"].shape)
    error = (up - weights["up.weight"])[2:].norm() / weights["up.weight"][2:].norm()
    assert 0 < float(error) < 0.12
