"""Behaviour that does not depend on weights: each check runs a model on a few tokens, or an input, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from specs.model.model import Model
from zoo.checks import cache, cross, direction, fixed_inputs
from zoo.checks.finite import finite
from zoo.checks.gradients import gradients
from zoo.checks.padding import padding
from zoo.checks.result import Check
from zoo.checks.stack_runner import StackRunner, stack_runners
from zoo.checks.subject import CheckedModel, subject_of
from zoo.core.progress import Progress, Stage
from zoo.weights.source import WeightSource

SideCheck = Callable[[StackRunner, CheckedModel], Check | Iterator[Check]]

ALL: tuple[SideCheck, ...] = (
    direction.order,
    padding,
    finite,
)
ENCODERS: tuple[SideCheck, ...] = (direction.bidirectional, *ALL)
CAUSAL_ENCODERS: tuple[SideCheck, ...] = (direction.causal, direction.sees_the_past, *ALL)
WHOLES: tuple[SideCheck, ...] = (
    fixed_inputs.bidirectional,
    fixed_inputs.order,
    fixed_inputs.batch,
    fixed_inputs.padding,
    fixed_inputs.finite,
)
CACHES: tuple[SideCheck, ...] = (cache.token_by_token, cache.prefill_and_steps, cache.empty_cache)
DECODERS: tuple[SideCheck, ...] = (direction.causal, direction.sees_the_past, *ALL, *CACHES)
IMAGES: tuple[SideCheck, ...] = (direction.within_images,)
CROSSING: tuple[SideCheck, ...] = (cross.cross_attention, cross.encoder_padding)


@dataclass(frozen=True)
class BehaviourReport:
    """The checks and what they ran on: ``subject`` is the model itself or a reduced model, ``weights`` the source of
    its weights."""

    subject: str
    weights: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.status != "failed" for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        checks = [check.as_dict() for check in self.checks]
        return {"passed": self.passed, "subject": self.subject, "weights": self.weights, "checks": checks}


def check_behaviour(
    spec: Model,
    weights: WeightSource | None = None,
    *,
    seed: int = 0,
    progress: Progress = lambda stage: None,
) -> BehaviourReport:
    """Run every check that applies to a spec.

    ``weights`` belong to the spec's model (default: random ones drawn for checking). A model too large to run is
    replaced by a reduced model with random weights. Raises :class:`specs.base.errors.UserError` where no reduced model is
    small enough.
    """
    subject = subject_of(spec, weights, seed)
    return BehaviourReport(
        subject.description, subject.weights.description, tuple(run_checks(subject, progress))
    )


def run_checks(
    subject: CheckedModel, progress: Progress = lambda stage: None, *, cached: bool = True
) -> Iterator[Check]:
    """Run every check that applies to a model, in turn; checks of cached decoding only with ``cached``."""
    for side in stack_runners(subject.model, subject.spec):
        for check in _checks_of(side):
            if check in CACHES and not cached:
                continue
            progress(Stage(f"check {check.__name__.replace('_', ' ')}"))
            with torch.no_grad():
                results = check(side, subject)
                checks = [results] if isinstance(results, Check) else list(results)
            yield from checks
    progress(Stage("check gradients"))
    yield gradients(subject)


def _checks_of(side: StackRunner) -> tuple[SideCheck, ...]:
    if not side.embedding.takes_tokens:
        return WHOLES
    if not side.decodes:
        return CAUSAL_ENCODERS if side.causal else ENCODERS
    if side.stack.sees_prompt:
        return ENCODERS + CACHES
    if side.stack.bidirectional == "image":
        return DECODERS + IMAGES
    return DECODERS + CROSSING if side.read_beside is not None else DECODERS
