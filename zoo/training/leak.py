"""Whether a model that learns to predict the next token can see it."""

from __future__ import annotations

import torch

from specs.model import Model
from zoo.checks.direction import causal
from zoo.checks.side import sides
from zoo.checks.subject import subject_of


def sees_its_answers(spec: Model) -> bool:
    """Whether what a decoder predicts changes with the tokens that it is to predict: its loss would mean nothing.

    Tried on a few tokens, with weights under which all that a model can see shows.  An encoder is given masks.
    """
    if spec.decoder is None:
        return False
    subject = subject_of(spec)
    with torch.no_grad():
        checks = [causal(side, subject) for side in sides(subject.model, spec) if side.decodes]
    return any(check.status == "failed" for check in checks)
