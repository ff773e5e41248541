"""Recipes for random weights: from a parameter's module path, shape and depth to a distribution."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from specs.base.base import Component
from specs.base.errors import PluginError, shorten
from specs.base.registry import load_implementation
from specs.model.initialization import Normal, T5Factors, XavierUniform
from specs.model.model import Model
from zoo.core.facts import CONSTRUCTED, FANS, HEAD_WIDTH, INITIAL
from zoo.core.tensors import weight_tensors


@dataclass(frozen=True)
class Distribution:
    """Independent draws: constant, or normal with a standard deviation, or uniform within +-bound; or the ``values`` that a
    plugin's constructor set."""

    constant: float | None = None
    std: float = 0.0
    bound: float = 0.0
    values: Tensor | None = field(default=None, compare=False)

    def fill(self, tensor: Tensor, generator: torch.Generator) -> None:
        """Fill a tensor in place."""
        if self.values is not None:
            tensor.copy_(self.values.reshape(-1))
        elif self.constant is not None:
            tensor.fill_(self.constant)
        elif self.bound:
            tensor.uniform_(-self.bound, self.bound, generator=generator)
        else:
            tensor.normal_(0.0, self.std, generator=generator)


@dataclass(frozen=True)
class WeightPlace:
    """Where a matrix or table is.

    ``role`` is the name of its module (query, up, token, ...), ``fan_in`` and ``fan_out`` the widths that it
    maps between, ``table`` whether its rows are looked up, ``head_width`` that of the attention around it,
    ``layers`` the depth of its stack.
    """

    role: str
    fan_in: int
    fan_out: int
    table: bool
    d_model: int
    head_width: int
    layers: int


def distributions(model: nn.Module, spec: Model) -> dict[str, Distribution]:
    """The distribution of every weight by name, tied ones under the first of their names.

    Matrices and tables follow the spec's recipe; of the vectors, biases are 0 and the weights of norms 1.  A
    module may state its own with a method ``initial(leaf) -> Distribution | None``, and the constructor of a plugin's may
    set values.
    """
    depths: dict[str, int] = {name: stack.depth for name, stack in spec.stacks()}
    widths = {
        part: spec.width_of(stack) for name, stack in spec.stacks() for part in (name, f"{name}_embedding")
    }
    modules = dict(model.named_modules())
    distributions = {}
    for name, parameter in weight_tensors(model):
        path, _, leaf = name.rpartition(".")
        owner, around = modules[path], modules[path.rpartition(".")[0]]
        distribution = _initial(owner, leaf)
        if distribution is None:
            distribution = _constructed(owner, leaf)
        if distribution is None and parameter.dim() < 2:
            distribution = Distribution(constant=0.0 if leaf == "bias" else 1.0)
        if distribution is None:
            fan_in, fan_out = fans(owner, parameter)
            weight = WeightPlace(
                role=path.rpartition(".")[2],
                fan_in=fan_in,
                fan_out=fan_out,
                table=isinstance(owner, nn.Embedding),
                d_model=widths.get(path.partition(".")[0], spec.output_width),
                head_width=HEAD_WIDTH.of(around),
                layers=depths.get(path.partition(".")[0], 1),
            )
            load_implementation(spec.initialization)
            distribution = distribution_for(spec.initialization, weight)
        distributions[name] = distribution
    return distributions


def _initial(owner: nn.Module, leaf: str) -> Distribution | None:
    """The distribution that a module states, or None."""
    distribution: object = INITIAL.of(owner)(leaf)
    if distribution is None or isinstance(distribution, Distribution):
        return distribution
    raise PluginError(
        f"{type(owner).__module__}.{type(owner).__qualname__}.initial({leaf!r}) must return a Distribution or None\n"
        f"  value: {shorten(distribution)}\n"
        "  Return zoo.core.initialization.Distribution(constant=1.0), for example."
    )


def _constructed(owner: nn.Module, leaf: str) -> Distribution | None:
    """The values that the constructor of a plugin's module set; None where it left or drew them."""
    values = CONSTRUCTED.of(owner).get(leaf)
    if values is None:
        return None
    first = float(values.reshape(-1)[0]) if values.numel() else 0.0
    return Distribution(constant=first) if bool((values == first).all()) else Distribution(values=values)


def fans(owner: nn.Module, parameter: Tensor) -> tuple[int, int]:
    """The widths that a matrix maps between: stated by its module as ``fans``, or else d_in and d_out of its shape, d_out x d_in."""
    return FANS.of(owner) or (parameter[0].numel(), parameter.shape[0])


@functools.singledispatch
def distribution_for(recipe: Component, weight: WeightPlace) -> Distribution:
    """The distribution of a matrix or a table; plugins register an implementation for their recipe."""
    raise PluginError(
        f"Initialization kind '{recipe.kind}' has no implementation\n"
        "  Register a function with zoo.core.initialization.distribution_for."
    )


@distribution_for.register
def _normal(recipe: Normal, weight: WeightPlace) -> Distribution:
    writes_to_stream = weight.role in ("output", "down")
    scaled = recipe.depth_scaled and writes_to_stream
    return Distribution(std=recipe.std / math.sqrt(2 * weight.layers) if scaled else recipe.std)


@distribution_for.register
def _xavier_uniform(recipe: XavierUniform, weight: WeightPlace) -> Distribution:
    if weight.table:
        return Distribution(std=weight.fan_in**-0.5)
    return Distribution(bound=math.sqrt(6 / (weight.fan_in + weight.fan_out)))


@distribution_for.register
def _t5(recipe: T5Factors, weight: WeightPlace) -> Distribution:
    match weight.role:
        case "token" | "vocabulary":
            variance = 1.0
        case "query":  # the scores are not scaled, so the queries are
            variance = 1 / (weight.fan_in * weight.head_width)
        case "table":
            variance = 1 / weight.d_model
        case _:
            variance = 1 / weight.fan_in
    return Distribution(std=recipe.factor * math.sqrt(variance))
