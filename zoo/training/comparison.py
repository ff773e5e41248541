"""Train several specs under the same conditions, in turn."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from specs.difference import Difference, differences
from specs.errors import UserError, option_name
from specs.model import Model
from zoo.builder import assemble
from zoo.memory import available_memory
from zoo.training.contender import Contender
from zoo.training.fitting import fitted
from zoo.training.leak import sees_its_answers
from zoo.training.score import Score
from zoo.training.settings import Settings
from zoo.training.store import Store, TrainingResult
from zoo.training.task import TrainingTask
from zoo.training.trainer import Trainer
from zoo.units import byte_text

SOLVED = 0.99
"""The accuracy at which a task counts as solved."""

_BYTES = 16  # per parameter: value, gradient and two moments in float32
_SAVE_SECONDS, _SAVE_SHARE = 3.0, 0.02


@dataclass(frozen=True)
class Moment:
    """The progress of a training run, called at every step."""

    label: str
    step: int
    steps: int
    loss: float


OnMoment = Callable[[Moment], None]


@dataclass(frozen=True)
class Result:
    """The result of one spec.

    ``spec``: as trained; ``losses``: one per step; ``seconds``: spent on steps; ``tokens``: per step; ``sees_answers``: the
    decoder can see its targets; ``diverged``: the last loss is not finite; ``kept``: loaded from an earlier run.
    """

    label: str
    spec: Model
    parameters: int
    losses: tuple[float, ...]
    scores: tuple[Score, ...]
    seconds: float
    tokens: int
    sees_answers: bool
    diverged: bool
    device: str
    kept: bool = False

    @property
    def last(self) -> Score | None:
        """The last score, or None if it diverged before the first."""
        return self.scores[-1] if self.scores else None

    @property
    def solved(self) -> int | None:
        """The step at which the task was solved, or None."""
        step = None
        for each in reversed(self.scores):
            if each.accuracy < SOLVED:
                break
            step = each.step
        return step

    @property
    def steps_per_second(self) -> float:
        """Training speed."""
        return len(self.losses) / self.seconds

    def as_dict(self) -> dict[str, Any]:
        """As JSON data; a loss that is not finite is null."""
        return {
            "label": self.label,
            "name": self.spec.name,
            "parameters": self.parameters,
            "loss": None if self.diverged or self.last is None else self.last.loss,
            "accuracy": None if self.diverged or self.last is None else self.last.accuracy,
            "solved_at": self.solved,
            "diverged_at": len(self.losses) if self.diverged else None,
            "sees_answers": self.sees_answers,
            "steps_per_second": self.steps_per_second,
            "tokens_per_second": self.steps_per_second * self.tokens,
            "device": self.device,
            "kept": self.kept,
            "losses": [loss if math.isfinite(loss) else None for loss in self.losses],
            "scores": [each.as_dict() for each in self.scores],
        }


@dataclass(frozen=True)
class TrainingComparison:
    """The results of all specs; the first is the baseline."""

    task: TrainingTask
    settings: Settings
    results: tuple[Result, ...]

    @property
    def sound(self) -> bool:
        """Whether no decoder can see its targets."""
        return not any(result.sees_answers for result in self.results)

    @property
    def smoothing(self) -> int:
        """The number of steps over which displayed losses are averaged."""
        return max(1, self.settings.steps // 50)

    def curve(self, result: Result) -> list[tuple[float, float]]:
        """The loss of a spec in training as points: a step, and the mean of the steps up to it."""
        wide, losses = self.smoothing, result.losses
        ends = [*range(wide, len(losses), max(1, wide // 2)), len(losses)]
        return [
            (end, sum(losses[max(0, end - wide) : end]) / len(losses[max(0, end - wide) : end]))
            for end in ends
        ]

    def differences(self, result: Result) -> list[Difference]:
        """The changes of a spec against the baseline, without their consequences."""
        return [each for each in differences(self.results[0].spec, result.spec) if not each.follows]

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "sound": self.sound,
            "task": {
                **self.task.as_dict(),
                "vocabulary": self.task.vocabulary,
                "chance_loss": self.task.chance,
            },
            "settings": self.settings.as_dict(),
            "results": [
                {
                    **result.as_dict(),
                    "differences": [each.as_dict() for each in self.differences(result)],
                }
                for result in self.results
            ],
        }


def contenders(named: Sequence[Contender], task: TrainingTask) -> list[Contender]:
    """Specs adapted to a task.  Raises :class:`UserError` if one cannot be adapted or compared with the others."""
    fit = [replace(each, spec=fitted(each.spec, task)) for each in named]
    for each in fit:
        size = sum(parameter.numel() for parameter in assemble(each.spec).parameters())
        if size * _BYTES > available_memory():
            raise UserError(
                f"{each.label} is too large to train here: its {size:,} parameters take {byte_text(size * _BYTES)}, "
                f"and {byte_text(available_memory())} are free\n  Reduce it, for example with {option_name('layers')} 4 and {option_name('width')} 128."
            )
    return fit


def compare(
    fit: Sequence[Contender],
    task: TrainingTask,
    settings: Settings,
    place: Path,
    progress: OnMoment = lambda moment: None,
    *,
    fresh: bool = False,
) -> TrainingComparison:
    """Train specs that fit the task, in turn, on a GPU if available.

    Results are saved at ``place``: interrupted runs resume and finished ones are reused, unless ``fresh``.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    results = []
    with _deterministic():
        for each in fit:
            store = Store(place, each.spec, task, settings, device)
            if fresh:
                store.clear()
            results.append(_result(each, task, settings, store, device, progress))
    return TrainingComparison(task, settings, tuple(results))


@contextmanager
def _deterministic() -> Iterator[None]:
    """Make equal seeds give equal results, as far as torch can, and restore its generators."""
    os.environ.setdefault(
        "CUBLAS_WORKSPACE_CONFIG", ":4096:8"
    )  # without it, matrix products on a GPU are not reproducible
    before = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*deterministic")
            yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=only_warned)


def _result(
    each: Contender,
    task: TrainingTask,
    settings: Settings,
    store: Store,
    device: torch.device,
    progress: OnMoment,
) -> Result:
    """Train a spec, or load its earlier result."""
    found = store.result()
    kept = found is not None
    if found is None:
        sees_answers = sees_its_answers(each.spec)
        trainer = _trained(each, Trainer(each.spec, task, settings, device), store, progress)
        found = TrainingResult(
            parameters=trainer.parameters,
            losses=tuple(trainer.losses),
            scores=tuple(trainer.scores),
            seconds=trainer.seconds,
            diverged=trainer.diverged,
            sees_answers=sees_answers,
        )
        store.keep_result(found)
    return Result(
        label=each.label,
        spec=each.spec,
        parameters=found.parameters,
        losses=found.losses,
        scores=found.scores,
        seconds=found.seconds,
        tokens=settings.batch * sum(task.lengths(each.spec.architecture).values()),
        sees_answers=found.sees_answers,
        diverged=found.diverged,
        device=device.type,
        kept=kept,
    )


def _trained(each: Contender, trainer: Trainer, store: Store, progress: OnMoment) -> Trainer:
    """Train to the end, from the start or from a saved state; the state is saved at once, then every few seconds."""
    store.resume(trainer)
    saved, cost = float("-inf"), 0.0
    while not trainer.finished:
        trainer.step()
        progress(Moment(each.label, trainer.done, trainer.settings.steps, trainer.losses[-1]))
        now = time.monotonic()
        if now - saved >= max(_SAVE_SECONDS, cost / _SAVE_SHARE) and not trainer.finished:
            store.keep_state(trainer.state())
            saved = time.monotonic()
            cost = saved - now
    return trainer
