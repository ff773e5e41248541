"""The outputs of a model, and which of them are judged."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from exporters.verification.cases import Case

Outputs = Mapping[str, Tensor]


def judged_positions(case: Case, scores: Tensor) -> Tensor:
    """Whether each score is judged, B or B T: at real tokens, and with images only from the last image vector on."""
    mask = case.batch.real
    if scores.dim() < 3 or mask is None:
        return torch.ones(scores.shape[:-1], dtype=torch.bool)
    real = mask == 1
    if case.placeholder is None:
        return real
    seen = (case.batch.inputs == case.placeholder).to(torch.int64)
    return real & (seen.flip(1).cumsum(1).flip(1) == seen)  # no image vector follows
