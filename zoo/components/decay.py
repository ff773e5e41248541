"""The decays of mixers: those that are fixed, and how those that are trained begin."""

from __future__ import annotations

import functools
import math

import torch

from specs.base.base import Component
from specs.base.errors import PluginError
from specs.base.registry import load_implementation
from specs.kinds.linear_attention import Retention, Slopes
from zoo.core.initialization import Distribution

RATES = Distribution(bound=math.log(16))
"""Logarithms of rates between 1/16 and 16 (Mamba; Gu and Dao, 2023)."""


def step_biases(least: float = 0.0, most: float = math.inf) -> Distribution:
    """Biases of step sizes near 0.01, or between the bounds: a step that is clamped gives its bias no gradient.

    A step size is the softplus of its projection plus its bias.
    """
    middle = 2 * least if math.isinf(most) else (least + most) / 2
    size = 0.01 if least < 0.01 < most else middle
    return Distribution(constant=size + math.log(-math.expm1(-size)))  # the inverse of softplus


def log_decays(decay: Component, heads: int, layer: int, layers: int) -> tuple[float, ...]:
    """The logarithm of the decay of each head in a layer, counted from 0, of a stack of ``layers``."""
    load_implementation(decay)
    return fixed_decays(decay, heads, layer, layers)


@functools.singledispatch
def fixed_decays(decay: Component, heads: int, layer: int, layers: int) -> tuple[float, ...]:
    """As ``log_decays`` has it; plugins register an implementation for their decay."""
    raise PluginError(
        f"Decay kind '{decay.kind}' has no implementation\n"
        "  Register a function with zoo.components.decay.fixed_decays."
    )


@fixed_decays.register
def _slopes(decay: Slopes, heads: int, layer: int, layers: int) -> tuple[float, ...]:
    """In float32, as ``MiniMaxLightningAttention`` of transformers computes them."""
    slopes = (1 / 2 ** (8 / heads)) ** torch.arange(1, heads + 1, device="cpu")  # H
    factor = 1 - layer / (layers - 1 + 1e-5) + 1e-5
    return tuple((-slopes * factor).tolist())


@fixed_decays.register
def _retention(decay: Retention, heads: int, layer: int, layers: int) -> tuple[float, ...]:
    return tuple(math.log1p(-(2.0 ** (-5 - head))) for head in range(heads))
