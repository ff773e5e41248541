"""Routers of mixtures of experts.

Shapes: batch B, length T, width D, experts E, chosen experts K, groups C.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import specs.kinds.mixture as spec
from zoo import functional
from zoo.components.linear import Linear
from zoo.context import BuildContext
from zoo.core.initialization import Distribution
from zoo.core.precision import wide

CONSTANT_WEIGHTS = (
    "routers whose weights are constant: of one expert, or of sparse_mixer, which weighs an expert by 1 unless another scores nearly as"
    " high"
)
"""The routers that get no gradient."""


def routers_of(module: nn.Module) -> list[Router]:
    """The routers within a module, in order."""
    return [router for router in module.modules() if isinstance(router, Router)]


class Router(Linear):
    """The logit of each expert for each token: B T D -> B T E."""

    score_correction_bias: Tensor | None
    parameter_role = "router"

    def __init__(self, spec: spec.Mixture, context: BuildContext) -> None:
        router = spec.router
        super().__init__(context.d_model, spec.experts, bias=router.bias)
        self.top_k, groups = spec.top_k, router.groups
        self.groups = None if groups is None else (groups.count, groups.top, groups.group_score_top_k)
        self.function, self.normalize, self.scale = router.scores, router.normalize, router.scale
        single = groups is None or groups.group_score_top_k == 1
        rising = single and not router.score_correction_bias
        self.by_logits = rising or router.scores == "sparse_mixer"
        self.expert_scale = nn.Parameter(torch.empty(spec.experts)) if router.expert_scales else None  # E
        self.register_buffer(
            "score_correction_bias", torch.empty(spec.experts) if router.score_correction_bias else None
        )

    def initial(self, leaf: str) -> Distribution | None:
        """Zero for the score correction, and one for the factors of experts."""
        if leaf == "expert_scale":
            return Distribution(constant=1.0)
        return Distribution(constant=0.0) if leaf == "score_correction_bias" else None

    @property
    def has_constant_weights(self) -> bool:
        """Whether the weights do not depend on the scores: a share of one number, or SparseMixer's where no two are close."""
        alone = self.top_k == 1 and self.normalize
        only = len(self.weight) == 1 and self.function == "softmax"
        return alone or only or self.function == "sparse_mixer"

    def choose(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The weights of the chosen experts, and their indices: B T E -> B T K twice."""
        scores, choice = self._scores(wide(logits))
        experts = functional.select_experts(choice, top_k=self.top_k, groups=self.groups)
        weights = functional.routing_weights(scores, experts, normalize=self.normalize, scale=self.scale)
        if self.expert_scale is not None:
            weights = weights * F.embedding(experts, wide(self.expert_scale)[:, None])[..., 0]
        return weights, experts

    def _scores(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The scores that weight experts, and those that select them: wide logits B T E -> B T E twice.

        Logits select where scores rise with them: they still differ where scores round to equal numbers.
        """
        match self.function:
            case "softmax":
                scores = logits.softmax(-1)
            case "sigmoid":
                scores = torch.sigmoid(logits)
            case "sparse_mixer":
                scores = functional.sparse_mixer_scores(logits)
        choice = logits if self.by_logits else scores
        return scores, choice if self.score_correction_bias is None else choice + self.score_correction_bias

    def margin(self, logits: Tensor) -> Tensor:
        """The relative margin of the last selected expert over the first rejected one: B T E -> B T.

        It is infinite if the selection cannot matter, as none is rejected or both weigh nothing.
        """
        scores, choice = self._scores(wide(logits))
        if self.by_logits and self.function != "sparse_mixer":
            choice = torch.exp(choice - choice.amax(-1, keepdim=True)).where(scores > 0, 0.0)
        margins = []
        if self.groups is not None:
            count, top, score_top_k = self.groups
            by_group = choice.unflatten(-1, (count, -1))  # B T C E/C
            margins.append(self._gap(by_group.topk(score_top_k, -1)[0].sum(-1), top))
            choice = functional.in_best_groups(choice, count, top, score_top_k)
        margins.append(self._gap(choice, self.top_k))
        if self.function == "sparse_mixer":
            margins.append(functional.sparse_mixer_margin(wide(logits), self.top_k))
        return torch.stack(margins).amin(0)

    def _gap(self, choice: Tensor, count: int) -> Tensor:
        """(a - b) / |a| of the smallest of the ``count`` largest, a, and the next, b -> all axes but the last.

        Scores of 0 in float32 are weights of 0, whichever is selected; logits and corrected scores are not.
        """
        if count == choice.shape[-1]:
            return torch.full_like(choice[..., 0], torch.inf)
        largest = choice.topk(count + 1, -1)[0]
        last, following = largest[..., -2], largest[..., -1]
        weighed = self.score_correction_bias is None and self.function != "sparse_mixer"
        equal = torch.inf if weighed else 0.0
        both = (last == 0) & (following == 0)
        return ((last - following) / last.abs()).where(~both, equal)
