"""Routing of tokens to experts.

Shapes: batch B, length T, experts E, chosen experts K.
"""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.functional.decorator import semantic_op
from zoo.functional.tensors import constant


@semantic_op
def select_experts(choice: Tensor, *, top_k: int, groups: tuple[int, int, int] | None) -> Tensor:
    """The indices of the ``top_k`` experts with the highest ``choice``: B T E -> B T K.

    ``groups``: count, top and score_top_k of :func:`in_best_groups`.
    """
    if groups is not None:
        choice = in_best_groups(choice, *groups)
    return choice.topk(top_k, -1)[1]


@semantic_op
def routing_weights(scores: Tensor, experts: Tensor, *, normalize: bool, scale: float) -> Tensor:
    """The weights of the chosen experts: scores B T E, experts B T K -> B T K."""
    weights = scores.gather(-1, experts)
    if normalize:
        weights = weights / weights.sum(-1, keepdim=True)
    return weights * scale


def in_best_groups(choice: Tensor, count: int, top: int, score_top_k: int) -> Tensor:
    """Set the scores of experts outside the ``top`` of ``count`` groups to the lowest number: ... E -> ... E.

    The score of a group is the sum of its ``score_top_k`` highest (DeepSeek-V2 and V3).
    """
    by_group = choice.unflatten(-1, (count, choice.shape[-1] // count))  # ... C E/C
    kept = among_largest(by_group.topk(score_top_k, -1)[0].sum(-1), top) > 0  # ... C
    return torch.where(kept[..., None], by_group, torch.finfo(choice.dtype).min).flatten(-2)


def among_largest(x: Tensor, count: int) -> Tensor:
    """1 for the ``count`` largest along the last axis, else 0: ... N -> ... N."""
    indices = x.topk(count, -1)[1]  # ... count
    every = constant(tuple(range(x.shape[-1])), x)  # N
    return (indices[..., None] == every).to(x.dtype).sum(-2)


SPARSE_MIXER_GAP = 0.02
"""The relative gap of logits up to which SparseMixer weighs experts against each other: twice its jitter."""


def sparse_mixer_scores(logits: Tensor) -> Tensor:
    """The weight of each expert if those with higher logits are taken already (SparseMixer-v2: Liu et al., 2024).

    It is a softmax over the expert and those whose logits are lower by at most ``SPARSE_MIXER_GAP``: ... E -> ... E.
    """
    logit, other = logits[..., :, None], logits[..., None, :]
    gaps = logit - other  # ... E E
    compared = (gaps >= 0) & (gaps <= SPARSE_MIXER_GAP * torch.maximum(other.abs(), logit))
    return 1.0 / torch.exp(torch.where(compared, -gaps, torch.finfo(logits.dtype).min)).sum(-1)


def sparse_mixer_margin(logits: Tensor, top_k: int) -> Tensor:
    """The least relative change of the logits that changes which are compared for the ``top_k`` experts: ... E -> ..."""
    ranked = logits.sort(-1, descending=True)[0]
    logit, other = ranked[..., :top_k, None], ranked[..., None, :]
    gaps = (logit - other) / torch.maximum(other.abs(), logit)  # ... K E
    below = torch.ones_like(gaps).triu(1) > 0
    return torch.minimum(gaps, (gaps - SPARSE_MIXER_GAP).abs()).where(below, torch.inf).amin((-2, -1))
