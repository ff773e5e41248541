"""The outputs of a model, and which of them are judged."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from exporters.verification.cases import Case

Outputs = Mapping[str, Tensor]


def judged_positions(case: Case, scores: Tensor) -> Tensor:
    """Whether each score is judged, B or B T: at real tokens, and with images only from the last image vector on."""
    real = real_positions(case, scores)
    if scores.dim() < 3 or case.batch.real is None or case.placeholder is None:
        return real
    seen = (case.batch.inputs == case.placeholder).to(torch.int64)
    return real & (seen.flip(1).cumsum(1).flip(1) == seen)  # no image vector follows


def real_positions(case: Case, values: Tensor) -> Tensor:
    """Whether each value belongs to a token and not to padding, B or B T, for tokens of images as well."""
    mask = case.batch.real
    if values.dim() < 3 or mask is None:
        return torch.ones(values.shape[:-1], dtype=torch.bool)
    return mask == 1
