"""The score of a model on held-out passages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specs.model.model import Model
from zoo.training.drafting import DRAFT_WEIGHT, Drafted
from zoo.training.passage import UNSCORED, Sample, sample
from zoo.training.task import TrainingTask

ROWS, BATCH = 256, 32
"""The number of held-out passages, and the batch size."""


@dataclass(frozen=True)
class Score:
    """The loss per token in nats and the top-1 accuracy, after a number of steps."""

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


def predictions(model: nn.Module, batch: Sample) -> tuple[Tensor, Tensor]:
    """The scores of tokens that a model is judged by, B T vocabulary, and their targets, B T."""
    if isinstance(model, Drafted):
        return model.both(batch)[1]
    return model(*batch.inputs).logits, batch.targets


def training_loss(model: nn.Module, batch: Sample) -> Tensor:
    """The loss that a model learns from: with a module that drafts for it, the sum of both losses."""
    if isinstance(model, Drafted):
        main, draft = model.both(batch)
        return token_loss(*main) + DRAFT_WEIGHT * token_loss(*draft)
    return token_loss(*predictions(model, batch))


@torch.no_grad()
def score(model: nn.Module, samples: list[Sample], step: int) -> Score:
    """The score of a model; leaves it in training mode."""
    model.eval()
    loss, right, count = 0.0, 0, 0
    for batch in samples:
        logits, targets = predictions(model, batch)
        scored = targets != UNSCORED
        loss += token_loss(logits, targets, "sum").item()
        right += int((logits.argmax(-1) == targets)[scored].sum())
        count += int(scored.sum())
    model.train()
    return Score(step, loss / count, right / count)


def held_out(spec: Model, task: TrainingTask, seed: int, device: torch.device) -> list[Sample]:
    """The held-out passages in batches."""
    return [
        sample(spec, task.passage("held out", BATCH, seed, i), task.tokens).to(device)
        for i in range(ROWS // BATCH)
    ]
