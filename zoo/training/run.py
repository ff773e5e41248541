"""One training run: from the start or a saved state to its result."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from specs.model.model import Model
from zoo.checks.direction import causal
from zoo.checks.stack_runner import stack_runners
from zoo.checks.subject import subject_of
from zoo.training.settings import Settings
from zoo.training.store import Store, TrainingResult
from zoo.training.task import TrainingTask
from zoo.training.trainer import Trainer

_SAVE_SECONDS, _SAVE_SHARE = 3.0, 0.02


@dataclass(frozen=True)
class Moment:
    """The progress of a training run, called at every step."""

    label: str
    step: int
    steps: int
    loss: float


@dataclass(frozen=True)
class Run:
    """A spec that fits the task, with its label and the directory of its results."""

    label: str
    spec: Model
    store: Store


OnMoment = Callable[[Moment], None]


@contextmanager
def deterministic() -> Iterator[None]:
    """Make equal seeds give equal results, as far as torch can, and restore its generators."""
    os.environ.setdefault(
        "CUBLAS_WORKSPACE_CONFIG", ":4096:8"
    )  # without it, matrix products on a GPU are not reproducible
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")  # use_deterministic_algorithms would import the compiler
    try:
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*deterministic")
            yield
    finally:
        torch.set_deterministic_debug_mode(before)


def train(run: Run, task: TrainingTask, settings: Settings, device: torch.device, progress: OnMoment) -> None:
    """Train from the start or from a saved state to the end, and save the result.

    The state is saved at once, then every few seconds.
    """
    sees_answers = sees_its_answers(run.spec)
    trainer = Trainer(run.spec, task, settings, device)
    run.store.resume(trainer)
    saved, cost = float("-inf"), 0.0
    while not trainer.finished:
        trainer.step()
        progress(Moment(run.label, trainer.done, settings.steps, trainer.losses[-1]))
        now = time.monotonic()
        if now - saved >= max(_SAVE_SECONDS, cost / _SAVE_SHARE) and not trainer.finished:
            run.store.keep_state(trainer.state())
            saved = time.monotonic()
            cost = saved - now
    run.store.keep_result(
        TrainingResult(
            parameters=trainer.parameters,
            losses=tuple(trainer.losses),
            scores=tuple(trainer.scores),
            seconds=trainer.seconds,
            diverged=trainer.diverged,
            sees_answers=sees_answers,
        )
    )


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
