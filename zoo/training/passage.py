"""What a task gives to learn from, and how it is put to a model of each architecture.

Shapes: batch B, prompt P, continuation C, tokens T.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from specs.model import Model

UNSCORED = -100
"""Stands for a target that does not count, as torch's cross entropy has it."""

SPECIALS = 2
"""Tokens beside a task's own: a separator, which starts what is continued, and a mask."""


@dataclass(frozen=True)
class Passage:
    """Token ids: ``prompt``, B P, ``continuation``, B C, and which of the latter are to be predicted: ``scored``, B C."""

    prompt: Tensor
    continuation: Tensor
    scored: Tensor


@dataclass(frozen=True)
class Sample:
    """What goes into a model, each B T, and what each output is to be: B T, or UNSCORED."""

    inputs: tuple[Tensor, ...]
    targets: Tensor

    def to(self, device: torch.device) -> Sample:
        """The same on a device."""
        return Sample(tuple(each.to(device) for each in self.inputs), self.targets.to(device))


def sample(spec: Model, passage: Passage, tokens: int) -> Sample:
    """A passage of a task with so many tokens, put to a model as its architecture is trained.

    A decoder reads prompt, separator and continuation, and predicts each next token; an encoder-decoder encodes the
    prompt; an encoder reads all with masks in place of what it is to predict.
    """
    prompt, continuation = passage.prompt, passage.continuation
    separator, mask = tokens, tokens + 1
    start = torch.full_like(continuation[:, :1], separator)
    targets = continuation.masked_fill(~passage.scored, UNSCORED)
    before = torch.cat((start, continuation[:, :-1]), 1)  # of each token of the continuation
    if spec.architecture == "encoder-decoder":
        return Sample((prompt, before), targets)
    if spec.architecture == "encoder":
        continuation = continuation.masked_fill(passage.scored, mask)
        inputs = torch.cat((prompt, start, continuation), 1)
    else:
        inputs = torch.cat((prompt, before), 1)
    unscored = torch.full_like(inputs[:, targets.shape[1] :], UNSCORED)
    return Sample((inputs,), torch.cat((unscored, targets), 1))
