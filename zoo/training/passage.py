"""Passages of tasks, and their form for each architecture.

Shapes: batch B, prompt P, continuation C, tokens T.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from specs.model.model import Model

UNSCORED = -100
"""The target that torch's cross entropy ignores."""

SPECIALS = 2
"""Tokens beyond a task's own: a separator, which starts the continuation, and a mask."""


@dataclass(frozen=True)
class Passage:
    """Token ids: ``prompt``, B P, ``continuation``, B C, and which of the latter are to be predicted: ``scored``, B C."""

    prompt: Tensor
    continuation: Tensor
    scored: Tensor


@dataclass(frozen=True)
class Sample:
    """The inputs of a model, B T each, and its targets: B T, or UNSCORED."""

    inputs: tuple[Tensor, ...]
    targets: Tensor

    def to(self, device: torch.device) -> Sample:
        """This sample on a device."""
        return Sample(tuple(tensor.to(device) for tensor in self.inputs), self.targets.to(device))


def sample(spec: Model, passage: Passage, tokens: int) -> Sample:
    """A passage in the form in which an architecture is trained; ``tokens``: the number of the task's own tokens.

    A decoder reads prompt, separator and continuation, and predicts each next token; an encoder-decoder encodes the
    prompt; an encoder reads everything, with masks in place of its targets.
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
