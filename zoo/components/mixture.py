"""Mixtures of experts.

Shapes: batch B, length T, width D, experts E, chosen experts K, hidden width H.  Only the chosen experts process a token, so the
hidden layer is B T K H.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import specs.kinds.mixture as spec
from zoo import functional
from zoo.components.feed_forward import MLP, Gated
from zoo.components.linear import Linear
from zoo.components.router import CONSTANT_WEIGHTS, Router
from zoo.components.scaling import scaled
from zoo.context import BuildContext
from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype
from zoo.core.sharding import EXPERTS, SHARED, Sharding
from zoo.registry import build_component, builds


class Matrices(nn.Module):
    """A layer of every expert: one matrix each, ``weight`` E d_out d_in, and a vector, ``bias``, if the layer has one."""

    bias: nn.Parameter | None

    def __init__(self, experts: int, layer: nn.Linear) -> None:
        super().__init__()
        self.fans = layer.in_features, layer.out_features
        self.weight = nn.Parameter(torch.empty(experts, *layer.weight.shape))
        self.bias = None if layer.bias is None else nn.Parameter(torch.empty(experts, *layer.bias.shape))

    def initial(self, leaf: str) -> Distribution | None:
        """Zero for biases."""
        return Distribution(constant=0.0) if leaf == "bias" else None

    def forward(self) -> functional.ExpertMatrices:
        return functional.ExpertMatrices(self.weight, self.bias)


class Experts(nn.Module):
    """The two or three layers of all experts: down(inner(up(x))), or down(inner(up(x), gate(x)))."""

    gate: Matrices | None
    parameter_role = "experts"

    def __init__(self, spec: spec.Mixture, context: BuildContext) -> None:
        super().__init__()
        expert: MLP | Gated = build_component(spec.expert, context)  # type: ignore[assignment]
        count = spec.experts
        self.gate = None if expert.gate is None else Matrices(count, expert.gate)
        self.up, self.inner, self.down = (
            Matrices(count, expert.up),
            expert.inner,
            Matrices(count, expert.down),
        )
        self.active_share = spec.top_k, count
        self.weighs_input = spec.router.weighs == "input"
        self.multiplier = expert.multiplier

    def sharding(self) -> Sharding:
        """By experts; every process routes every token."""
        return Sharding({"": EXPERTS, "inner.activation": SHARED}, {"experts": len(self.up.weight)})

    def forward(self, x: Tensor, weights: Tensor, experts: Tensor) -> Tensor:
        """x: B T D, weights and experts: B T K -> B T D."""
        x = in_dtype(x, self.up.weight.dtype)
        into = tuple(part() for part in (self.up, self.gate) if part is not None)
        weights = in_dtype(weights, x.dtype)
        mixed = functional.mixture_of_experts(
            x, weights, experts, into, self.down(), self.inner, of_input=self.weighs_input
        )
        return scaled(mixed, self.multiplier)


@builds(spec.Mixture)
class Mixture(nn.Module):
    """The sum of weight * expert(norm(x)), or expert(weight * norm(x)), over experts, plus shared(norm(x)); the router may have
    a norm of its own."""

    def __init__(self, spec: spec.Mixture, context: BuildContext) -> None:
        super().__init__()
        self.router_norm, self.norm = (
            None if norm is None else build_component(norm, context) for norm in (spec.router.norm, spec.norm)
        )
        scale = spec.router.input_scale
        self.input_scale = context.d_model**-0.5 if scale == "inverse_sqrt_d_model" else scale or 1.0
        self.router = Router(spec, context)
        self.experts = Experts(spec, context)
        self.shared = None if spec.shared is None else build_component(spec.shared, context)
        self.shared_gate = Linear(context.d_model, 1, bias=False) if spec.shared_gate else None

    def without_gradient(self) -> dict[str, str]:
        """The router and its norm if the weights of experts are constant."""
        constant = dict.fromkeys(("router.weight", "router.bias", "router_norm"), CONSTANT_WEIGHTS)
        return constant if self.router.has_constant_weights else {}

    def forward(self, x: Tensor) -> Tensor:
        read = x if self.router_norm is None else self.router_norm(x)
        chosen = self.router.choose(self.router(scaled(read, self.input_scale)))
        x = x if self.norm is None else self.norm(x)
        mixed = self.experts(x, *chosen)
        if self.shared is None:
            return mixed
        shared = self.shared(x)
        return mixed + (shared if self.shared_gate is None else torch.sigmoid(self.shared_gate(x)) * shared)
