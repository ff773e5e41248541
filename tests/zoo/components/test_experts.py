"""Experts are the feed-forward that the registry builds for their spec, a plugin's included."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn

import specs.kinds.feed_forward as spec
from specs.kinds.mixture import Mixture
from zoo import registry
from zoo.components.feed_forward import MLP, Inner
from zoo.context import BuildContext


class HalvedSpec(spec.TwoLayer):
    """A feed-forward that halves its hidden layer."""

    kind: Literal["halved"] = "halved"


class HalvedInner(Inner):
    """Half of the usual hidden layer."""

    def forward(self, up: Tensor) -> Tensor:
        return super().forward(up) / 2


class Halved(MLP):
    """down(inner(up(x)) / 2)."""

    def __init__(self, halved: HalvedSpec, context: BuildContext) -> None:
        super().__init__(halved, context)  # type: ignore[arg-type]
        self.inner = HalvedInner(halved)


def test_a_plugins_feed_forward_computes_its_own_formula_as_an_expert(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builders: dict[Any, Any] = registry._builders
    monkeypatch.setitem(builders, HalvedSpec, Halved)
    expert = HalvedSpec(hidden=6, activation="relu", bias=True)
    usual = Mixture(experts=3, top_k=2, expert=spec.MLP(hidden=6, activation="relu"))
    mixed = usual.model_copy(update={"expert": expert})
    context = BuildContext(4, None, causal=True, cross=False)
    mixture: Any = registry.build_component(mixed, context)
    torch.manual_seed(0)
    for parameter in mixture.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(2, 5, 4)
    weights, chosen = mixture.router.choose(mixture.router(x))
    single, expected = Halved(expert, context), torch.zeros(2, 5, 4)
    for number in range(3):
        for name in ("up", "down"):
            matrices = getattr(mixture.experts, name)
            getattr(single, name).weight.data = matrices.weight.data[number]
            getattr(single, name).bias.data = matrices.bias.data[number]
        expected += single(x) * (weights * (chosen == number)).sum(-1, keepdim=True)
    torch.testing.assert_close(mixture(x), expected)
