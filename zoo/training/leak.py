"""Whether a model that learns next-token prediction can see the next token."""

from __future__ import annotations

import torch

from specs.model.model import Model
from zoo.checks.direction import causal
from zoo.checks.stack_runner import stack_runners
from zoo.checks.subject import subject_of


def sees_its_answers(spec: Model) -> bool:
    """Whether a decoder's predictions depend on their targets, which makes its loss meaningless.

    Tested on a few tokens, with weights that expose every dependence.  An encoder reads masks instead.
    """
    if spec.decoder is None:
        return False
    subject = subject_of(spec)
    with torch.no_grad():
        checks = [causal(side, subject) for side in stack_runners(subject.model, spec) if side.decodes]
    return any(check.status == "failed" for check in checks)
