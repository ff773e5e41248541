"""Train several specs under the same conditions, in turn or in several processes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from specs.base.errors import UserError, option_name
from specs.forms.difference import Difference, differences
from specs.model.model import Model
from zoo.builder import assemble
from zoo.core.units import byte_text
from zoo.machine.memory import available_memory
from zoo.training.contender import Contender
from zoo.training.fitting import fitted
from zoo.training.processes import train_in_processes
from zoo.training.run import OnMoment, Run, deterministic, train
from zoo.training.score import Score
from zoo.training.settings import Settings
from zoo.training.store import Store
from zoo.training.task import TrainingTask

SOLVED = 0.99
"""The accuracy at which a task counts as solved."""

_BYTES = 16  # per parameter: value, gradient and two moments in float32


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
        for score in reversed(self.scores):
            if score.accuracy < SOLVED:
                break
            step = score.step
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
            "scores": [score.as_dict() for score in self.scores],
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
        return [
            difference
            for difference in differences(self.results[0].spec, result.spec)
            if not difference.follows
        ]

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "passed": self.sound,
            "task": {
                **self.task.as_dict(),
                "vocabulary": self.task.vocabulary,
                "chance_loss": self.task.chance,
            },
            "settings": self.settings.as_dict(),
            "results": [
                {
                    **result.as_dict(),
                    "differences": [difference.as_dict() for difference in self.differences(result)],
                }
                for result in self.results
            ],
        }


def contenders(named: Sequence[Contender], task: TrainingTask, jobs: int = 1) -> list[Contender]:
    """Specs adapted to a task, of which ``jobs`` train at once.

    Raises :class:`UserError` if one cannot be adapted or compared with the others, or if memory is too small for them.
    """
    fit = [replace(contender, spec=fitted(contender.spec, task)) for contender in named]
    drafts = [contender.label for contender in fit if contender.spec.reads_hidden_states]
    if 0 < len(drafts) < len(fit):
        raise UserError(
            "Modules of multi-token prediction cannot be compared with other models: they predict the token after the next one\n"
            f"  value: {', '.join(drafts)}\n  Compare them with each other."
        )
    copies = 2 if drafts else 1  # a module learns beside a model of its own size
    sizes = [
        copies * _BYTES * sum(parameter.numel() for parameter in assemble(contender.spec).parameters())
        for contender in fit
    ]
    free = available_memory()
    for contender, size in zip(fit, sizes, strict=True):
        if size > free:
            raise UserError(
                f"{contender.label} is too large to train here: its {size // _BYTES:,} parameters take {byte_text(size)}, "
                f"and {byte_text(free)} are free\n  Reduce it, for example with {option_name('num_layers')} 4 and {option_name('width')} 128."
            )
    needed = list(accumulate(sorted(sizes, reverse=True)[:jobs]))
    if needed and needed[-1] > free:
        raise UserError(
            f"{len(needed)} models that train at once must fit into memory\n  value: {byte_text(needed[-1])}, and {byte_text(free)} are free\n"
            f"  Pass {option_name('jobs')} {sum(size <= free for size in needed)}."
        )
    return fit


def compare(
    fit: Sequence[Contender],
    task: TrainingTask,
    settings: Settings,
    directory: Path,
    progress: OnMoment = lambda moment: None,
    *,
    fresh: bool = False,
    jobs: int = 1,
) -> TrainingComparison:
    """Train specs that fit the task, on a GPU if available: in turn, or ``jobs`` at once, each in a process of its own.

    Results are saved in ``directory``: interrupted runs resume and finished ones are reused, unless ``fresh``.  Raises
    :class:`UserError` for a damaged file there, and if a process ends before its model is trained.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    runs = [
        Run(contender.label, contender.spec, Store(directory, contender.spec, task, settings, device))
        for contender in fit
    ]
    if fresh:
        for run in runs:
            run.store.clear()
    # Equal specs are one run.
    due = {run.store.directory: run for run in reversed(runs) if run.store.result() is None}
    waiting = list(reversed(due.values()))
    if min(jobs, len(waiting)) > 1:
        train_in_processes(waiting, task, settings, device, jobs, progress)
    else:
        with deterministic():
            for run in waiting:
                train(run, task, settings, device, progress)
    results = (_result(run, task, settings, device, kept=run.store.directory not in due) for run in runs)
    return TrainingComparison(task, settings, tuple(results))


def _result(run: Run, task: TrainingTask, settings: Settings, device: torch.device, *, kept: bool) -> Result:
    """The saved result of a finished run."""
    result = run.store.result()
    assert result is not None
    return Result(
        label=run.label,
        spec=run.spec,
        parameters=result.parameters,
        losses=result.losses,
        scores=result.scores,
        seconds=result.seconds,
        tokens=settings.batch * sum(task.lengths(run.spec.architecture).values()),
        sees_answers=result.sees_answers,
        diverged=result.diverged,
        device=device.type,
        kept=kept,
    )
