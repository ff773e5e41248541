"""A plugin's module begins with the values that its own constructor set."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn
from torch.utils._device import _device_constructors

from specs.base import registry as kinds
from specs.base.base import Component
from specs.base.registry import register
from specs.model.model import Model
from tests.zoo.tiny import BLOCK, gpt2
from zoo import registry
from zoo.builder import assemble
from zoo.checks import check_behaviour
from zoo.checks.probe import ProbeWeights
from zoo.components.linear import Linear
from zoo.context import BuildContext
from zoo.core.constructed_values import MOST
from zoo.registry import builds
from zoo.weights.random import RandomWeights


class Scaled(nn.Module):
    """Weights set in every way of setting them."""

    counts: Tensor

    def __init__(self, spec: Component, context: BuildContext) -> None:
        super().__init__()
        width = context.d_model
        self.gain = nn.Parameter(torch.tensor(0.5))
        self.full = nn.Parameter(torch.full((width,), 0.25))
        self.product = nn.Parameter(torch.ones(width) * 0.75)
        self.ramp = nn.Parameter(torch.linspace(0.1, 0.9, width))
        self.listed = nn.Parameter(torch.tensor([0.5, 2.0]))
        self.filled = nn.Parameter(torch.empty(width))
        nn.init.constant_(self.filled, 0.3)
        self.partly = nn.Parameter(torch.zeros(2, width))
        with torch.no_grad():
            self.partly[1] = 2.0
            self.product.mul_(2)
        self.register_buffer("counts", torch.arange(width, dtype=torch.float32))
        self.unset = nn.Parameter(torch.empty(width))
        self.half_set = nn.Parameter(torch.empty(width))
        with torch.no_grad():
            self.half_set[1:] = 7.0
        self.drawn = nn.Parameter(torch.randn(width) + 3.0)
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.up = Linear(width, width)
        self.large = nn.Parameter(torch.zeros(MOST + 1))

    def forward(self, x: Tensor) -> Tensor:
        x = (
            x * self.gain
            + self.full
            + self.product * self.ramp * self.filled * self.drawn
            + self.counts.cos()
        )
        x = x + self.partly.sum(0) + self.listed.sum() * self.unset + self.half_set + self.large.sum()
        return self.up(self.norm(self.linear(x)))


@pytest.fixture
def spec() -> Iterator[Model]:
    """A decoder with a plugin's feed-forward, whose kind is forgotten afterwards."""

    @register("feed_forward")
    class ScaledKind(Component):
        """A kind of a plugin."""

        kind: Literal["scaled"] = "scaled"

    builds(ScaledKind)(Scaled)
    yield gpt2(decoder={"layers": 1, "block": {**BLOCK, "feed_forward": {"kind": "scaled"}}})
    del registry._builders[ScaledKind], kinds._slots["feed_forward"]["scaled"]


PLACE = "decoder.blocks.0.feed_forward."


def first(source: Any, leaf: str) -> Tensor:
    return torch.cat(list(source.pieces(PLACE + leaf)))


@pytest.fixture(params=["all constructors", "without linspace"])
def constructors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The functions that follow a device context, which torch collects once: transformers has another linspace meanwhile."""
    _device_constructors.cache_clear()
    with monkeypatch.context() as patch:
        if request.param == "without linspace":
            patch.setattr(torch, "linspace", functools.partial(torch.linspace))
        _device_constructors()
    yield
    _device_constructors.cache_clear()


@pytest.mark.usefixtures("constructors")
def test_values_set_by_a_constructor_are_the_initial_ones(spec: Model) -> None:
    before = torch.get_rng_state()
    model = assemble(spec)
    assert torch.equal(before, torch.get_rng_state())
    assert all(each.is_meta for each in model.parameters())
    source, width = RandomWeights(model, spec), spec.d_model
    expected = {
        "gain": torch.tensor([0.5]),
        "full": torch.full((width,), 0.25),
        "product": torch.full((width,), 1.5),
        "ramp": torch.linspace(0.1, 0.9, width),
        "listed": torch.tensor([0.5, 2.0]),
        "filled": torch.full((width,), 0.3),
        "partly": torch.cat((torch.zeros(width), torch.full((width,), 2.0))),
        "counts": torch.arange(width, dtype=torch.float32),
        "norm.weight": torch.ones(width),
        "norm.bias": torch.zeros(width),
    }
    for leaf, values in expected.items():
        assert torch.equal(first(source, leaf), values), leaf


def test_unset_and_drawn_values_follow_the_recipe(spec: Model) -> None:
    source = RandomWeights(assemble(spec), spec)
    for leaf in ("unset", "half_set", "drawn", "large"):
        assert bool((first(source, leaf) == 1).all()), leaf
    for leaf in ("linear.weight", "up.weight"):
        assert first(source, leaf).std() > 0
    assert not first(source, "linear.bias").any()


def test_checks_scatter_weights_around_these_values(spec: Model) -> None:
    model = assemble(spec)
    drawn = first(ProbeWeights(model, spec), "ramp") - torch.linspace(0.1, 0.9, spec.d_model)
    assert 0 < float(drawn.abs().max()) < 0.6
    assert check_behaviour(spec).checks
