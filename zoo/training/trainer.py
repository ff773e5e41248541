"""The training of one model."""

from __future__ import annotations

import hashlib
import math
import time
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from specs.model.model import Model
from zoo.training.drafting import Drafted, initialized
from zoo.training.passage import sample
from zoo.training.score import Score, held_out, score, training_loss
from zoo.training.settings import CLIP, END, WARM_UP, Settings
from zoo.training.task import TrainingTask

SCORES = 10
"""The number of evaluations during training."""


class Trainer:
    """A model initialized by its spec's recipe, with optimizer, schedule and measurements.

    ``losses``: training loss per step.  A loss that is not finite ends the training: ``diverged``.
    """

    def __init__(self, spec: Model, task: TrainingTask, settings: Settings, device: torch.device) -> None:
        self.spec, self.task, self.settings, self.device = spec, task, settings, device
        model = Drafted(spec, settings.seed) if spec.reads_hidden_states else initialized(spec, settings.seed)
        self.model: nn.Module = model.to(device).train()
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        own = model.draft if isinstance(model, Drafted) else model
        self.parameters = sum(parameter.numel() for parameter in own.parameters())
        self.optimizer = AdamW(trained, lr=settings.rate, fused=True)
        self.schedule = LambdaLR(self.optimizer, lambda step: share_of_rate(step, settings.steps))
        self.held_out = held_out(spec, task, settings.seed, device)
        self.losses: list[float] = []
        self.scores: list[Score] = []
        self.seconds = 0.0
        """Seconds spent on steps, without scoring and saving."""

    @property
    def done(self) -> int:
        """The number of finished steps."""
        return len(self.losses)

    @property
    def diverged(self) -> bool:
        """Whether the last loss is not finite."""
        return bool(self.losses) and not math.isfinite(self.losses[-1])

    @property
    def finished(self) -> bool:
        """Whether training is finished."""
        return self.diverged or self.done >= self.settings.steps

    def step(self) -> None:
        """Train on the next passages, and score the model when due."""
        before = time.perf_counter()
        self._learn()
        self.seconds += time.perf_counter() - before
        every = max(1, self.settings.steps // SCORES)
        if not self.diverged and (self.done % every == 0 or self.done == self.settings.steps):
            self.scores.append(score(self.model, self.held_out, self.done))

    def _learn(self) -> None:
        seed, step = self.settings.seed, self.done
        passage = self.task.passage("training", self.settings.batch, seed, step)
        batch = sample(self.spec, passage, self.task.tokens).to(self.device)
        torch.manual_seed(_dropout_seed(seed, step))
        loss = training_loss(self.model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.schedule.step()
        self.losses.append(loss.item())

    def state(self) -> dict[str, Any]:
        """The state for resuming."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "losses": self.losses,
            "scores": [score.as_dict() for score in self.scores],
            "seconds": self.seconds,
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.losses, self.seconds = [float(loss) for loss in state["losses"]], float(state["seconds"])
        self.scores = [Score(**fields) for fields in state["scores"]]


def share_of_rate(step: int, steps: int) -> float:
    """The fraction of the peak learning rate at a step: linear warm-up, then cosine decay to a tenth."""
    warm_up = max(1, int(WARM_UP * steps))
    if step < warm_up:
        return (step + 1) / warm_up
    along = (step - warm_up) / max(1, steps - warm_up)
    return END + (1 - END) * (1 + math.cos(math.pi * along)) / 2


def _dropout_seed(seed: int, step: int) -> int:
    """A generator seed for each step, so that resuming changes nothing."""
    return int.from_bytes(hashlib.sha256(f"{seed}/dropout/{step}".encode()).digest()[:7], "little")
