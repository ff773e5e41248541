"""A short training of a spec and its base on a toy task, as ``zoo compare`` trains them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

LARGEST = 20_000_000
"""The most parameters of a model that is trained."""

_BETWEEN = 0.1
"""Seconds between two points of a curve that is drawn live."""


def run(request: Mapping[str, Any], tell: Callable[..., None]) -> None:
    """Train the base and the spec of the request in turn, and report their losses."""
    from cli.options.default_directory import BUILD
    from cli.studio.typed_spec import TypedSpec
    from specs.language.load import load
    from zoo.training.comparison import compare, contenders
    from zoo.training.contender import Contender
    from zoo.training.run import Moment
    from zoo.training.settings import Settings
    from zoo.training.shrinking import shrunk
    from zoo.training.tasks import find_task

    folder = Path(request["folder"])
    spec = TypedSpec.read(request["text"], folder).model
    base = load(request["base"]) if request["base"] else TypedSpec.read(request["base_text"], folder).model
    task = find_task(request["task"], None, None, [base, spec])
    named = [Contender("base", base), Contender("now", spec)]
    small = [
        Contender(contender.label, shrunk(contender.spec, request["layers"], request["width"]))
        for contender in named
    ]
    fit = contenders(small, task)
    sizes = [_size(contender) for contender in fit]
    tell(
        "models",
        models=[{"label": contender.label, "name": contender.spec.name, "parameters": size}
                for contender, size in zip(fit, sizes, strict=True)],
        chance=task.chance, steps=request["steps"],
    )  # fmt: skip
    points: list[tuple[str, int, float | None]] = []
    reported = 0.0

    def progress(moment: Moment) -> None:
        nonlocal reported
        points.append((moment.label, moment.step, _finite(moment.loss)))
        if time.monotonic() - reported > _BETWEEN or moment.step == moment.steps:
            tell("steps", points=points)
            points.clear()
            reported = time.monotonic()

    comparison = compare(fit, task, Settings(steps=request["steps"]), folder / BUILD / "compare", progress)
    results = [
        {
            **result.as_dict(),
            "curve": [(step, _finite(loss)) for step, loss in comparison.curve(result)],
            "losses": None,
        }
        for result in comparison.results
    ]
    tell("done", results=results, smoothing=comparison.smoothing, task=task.name)


def _finite(loss: float) -> float | None:
    """A loss as JSON data: None for one that is not finite, which JSON cannot say."""
    return loss if math.isfinite(loss) else None


def _size(contender: Any) -> int:
    """The parameters of a model, few enough to train while one waits."""
    from specs.base.errors import UserError
    from zoo.builder import assemble

    size = sum(parameter.numel() for parameter in assemble(contender.spec).parameters())
    if size > LARGEST:
        raise UserError(
            f"{contender.spec.name} is too large to train while you wait: {size:,} parameters, at most {LARGEST:,}.\n"
            "  Reduce both models with Layers and Width, or train them with zoo compare."
        )
    return size
