"""Mixtures of experts.

Shapes: batch B, length T, width D, experts E, hidden width H.  Dispatch is static: every expert works on every token,
and those that the router did not choose get the weight 0, so that the hidden layer is B T E H.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import specs.mixture as spec
from specs.feed_forward import Gated, TwoLayer
from zoo import functional
from zoo.components.feed_forward import GatedInner, Inner
from zoo.components.linear import Linear
from zoo.context import BuildContext
from zoo.initialization import Distribution
from zoo.precision import in_dtype, wide
from zoo.registry import build_component, builds


class Router(Linear):
    """The weight of each expert for each token."""

    correction: Tensor | None

    def __init__(self, spec: spec.Mixture, context: BuildContext) -> None:
        router = spec.router
        super().__init__(context.d_model, spec.experts, bias=router.bias)
        self.top_k, self.groups = spec.top_k, router.groups
        self.sigmoid, self.normalize, self.scale = router.scores == "sigmoid", router.normalize, router.scale
        self.register_buffer("correction", torch.empty(spec.experts) if router.correction else None)

    def initial(self, leaf: str) -> Distribution | None:
        """The correction starts at 0."""
        return Distribution(constant=0.0) if leaf == "correction" else None

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """B T D -> the scores that weight, and those that choose: B T E twice."""
        logits = wide(super().forward(x))
        scores = torch.sigmoid(logits) if self.sigmoid else logits.softmax(-1)
        return scores, scores if self.correction is None else scores + self.correction

    def forward(self, x: Tensor) -> Tensor:
        """B T D -> B T E, 0 for the experts that are not chosen."""
        scores, choice = self.scores(x)
        groups = None if self.groups is None else (self.groups.count, self.groups.top, self.groups.best)
        return functional.routing_weights(
            scores, choice, top_k=self.top_k, groups=groups, normalize=self.normalize, scale=self.scale
        )

    def margin(self, x: Tensor) -> Tensor:
        """B T D -> B T: how far the last choice is above the first passed over, as a part of itself; infinite where nothing
        depends on it: none is passed over, or both weigh nothing.
        """
        _, choice = self.scores(x)
        margins = []
        if self.groups is not None:
            by_group = choice.unflatten(-1, (self.groups.count, -1))  # B T C E/C
            group_scores = by_group.topk(self.groups.best, -1)[0].sum(-1)  # B T C
            margins.append(self._gap(group_scores, self.groups.top))
            choice = functional.in_best_groups(choice, self.groups.count, self.groups.top, self.groups.best)
        margins.append(self._gap(choice, self.top_k))
        return torch.stack(margins).amin(0)

    def _gap(self, choice: Tensor, count: int) -> Tensor:
        """(a - b) / |a| of the last of the ``count`` largest, a, and the next, b -> all axes but the last.

        Scores that are 0 in float32 are weights of 0, whichever of them is chosen; corrected ones are not.
        """
        if count == choice.shape[-1]:
            return torch.full_like(choice[..., 0], torch.inf)
        largest = choice.topk(count + 1, -1)[0]
        last, following = largest[..., -2], largest[..., -1]
        equal = torch.inf if self.correction is None else 0.0
        both = (last == 0) & (following == 0)
        return ((last - following) / last.abs()).where(~both, equal)


class Matrices(nn.Module):
    """One matrix per expert, ``weight``, and one vector, ``bias``: E rows, or none."""

    bias: nn.Parameter | None

    def __init__(
        self, experts: int, rows: int, columns: int, fans: tuple[int, int], bias: int | None
    ) -> None:
        super().__init__()
        self.fans = fans
        self.weight = nn.Parameter(torch.empty(experts, rows, columns))
        self.bias = None if bias is None else nn.Parameter(torch.empty(experts, bias))

    def initial(self, leaf: str) -> Distribution | None:
        """Biases start at 0."""
        return Distribution(constant=0.0) if leaf == "bias" else None


class Experts(nn.Module):
    """The two layers, or three, of all experts: gate and up E H D, down E H D (d_in x d_out)."""

    gate: Matrices | None

    def __init__(self, spec: spec.Mixture, context: BuildContext) -> None:
        super().__init__()
        expert, width, count = spec.expert, context.d_model, spec.experts
        assert isinstance(expert, TwoLayer)
        hidden = expert.hidden

        def into() -> Matrices:
            return Matrices(count, hidden, width, (width, hidden), hidden if expert.bias else None)

        self.gate = into() if isinstance(expert, Gated) else None
        self.up = into()
        self.inner = GatedInner(expert) if isinstance(expert, Gated) else Inner(expert)
        self.down = Matrices(count, hidden, width, (hidden, width), width if expert.bias else None)

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        """x: B T D, weights: B T E -> B T D."""
        x = in_dtype(x, self.up.weight.dtype)
        into = [part for part in (self.up, self.gate) if part is not None]
        hidden = self.inner(*(functional.by_expert(x, part.weight, part.bias) for part in into))  # B T E H
        return functional.mixed_experts(hidden, in_dtype(weights, x.dtype), self.down.weight, self.down.bias)


@builds(spec.Mixture)
class Mixture(nn.Module):
    """The sum of weight * expert(x) over experts, plus shared(x)."""

    def __init__(self, spec: spec.Mixture, context: BuildContext) -> None:
        super().__init__()
        self.router = Router(spec, context)
        self.experts = Experts(spec, context)
        self.shared = None if spec.shared is None else build_component(spec.shared, context)
        self.shared_gate = Linear(context.d_model, 1, bias=False) if spec.shared_gate else None

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.experts(x, self.router(x))
        if self.shared is None:
            return mixed
        shared = self.shared(x)
        return mixed + (shared if self.shared_gate is None else torch.sigmoid(self.shared_gate(x)) * shared)
