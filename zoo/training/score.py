"""How well a model predicts what is held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specs.model import Model
from zoo.training.passage import UNSCORED, Sample, sample
from zoo.training.task import Task

ROWS, BATCH = 256, 32
"""Passages that are held out, and how many are read at once."""


@dataclass(frozen=True)
class Score:
    """After so many steps: the loss of a token in nats, and the share of tokens whose best guess is right."""

    step: int
    loss: float
    accuracy: float

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return vars(self)


def token_loss(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """The cross entropy of the scored targets.  logits: B T vocabulary, targets: B T."""
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=UNSCORED, reduction=reduction
    )


@torch.no_grad()
def score(model: nn.Module, samples: list[Sample], step: int) -> Score:
    """The score of a model, which is left in training mode."""
    model.eval()
    loss, right, count = 0.0, 0, 0
    for each in samples:
        logits, scored = model(*each.inputs).logits, each.targets != UNSCORED
        loss += token_loss(logits, each.targets, "sum").item()
        right += int((logits.argmax(-1) == each.targets)[scored].sum())
        count += int(scored.sum())
    model.train()
    return Score(step, loss / count, right / count)


def held_out(spec: Model, task: Task, seed: int, device: torch.device) -> list[Sample]:
    """The passages that are held out, in batches."""
    return [
        sample(spec, task.passage("held out", BATCH, seed, i), task.tokens).to(device)
        for i in range(ROWS // BATCH)
    ]
