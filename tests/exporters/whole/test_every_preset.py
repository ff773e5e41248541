"""Every published architecture is exported and verified in every precision; targets take turns, or all with ZOO_EXHAUSTIVE=1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporters.export import export
from exporters.graph.precisions import PRECISIONS
from exporters.quality.quality import QualityError
from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS
from exporters.verification.result import VerificationError
from specs.model.model import Model
from tests.exporters.reduced_presets import found_structures, save_with_outliers, structure, structures

EXHAUSTIVE = bool(os.environ.get("ZOO_EXHAUSTIVE"))
"""Whether every structure goes to every target, with both kinds of weights; else they take turns."""

PARTS = 8
OVERFLOW = "but float16 holds at most"


def _chosen(part: int, precision: str) -> Iterator[tuple[str, Model, str, bool]]:
    """Presets with a target each, and whether their weights have outliers."""
    turn = list(PRECISIONS).index(precision)
    targets = [name for name, target in TARGETS.items() if precision not in target.unsupported_precisions]
    for number, name in enumerate(structures()):
        if number % PARTS == part:
            for step, target in enumerate(targets):
                for outliers in (False, True):
                    turns = (number + turn) % len(targets) == step and (number // 2 + turn) % 2 == outliers
                    if EXHAUSTIVE or turns:
                        yield name, structure(name), target, outliers


def _export(spec: Model, place: Path, options: ExportOptions) -> None:
    """Export a model; where weights with outliers need a wider range than float16 has, with others."""
    try:
        export(spec, place, options)
    except VerificationError as error:
        if options.weights == "random" or OVERFLOW not in str(error):
            raise
        export(spec, place, options.changed(weights="random"))


@pytest.mark.slow
def test_the_recorded_structures_are_those_of_the_presets() -> None:
    assert structures() == found_structures(), "Run `make digests`."


@pytest.mark.slow
@pytest.mark.timeout(3600 if EXHAUSTIVE else 300)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("precision", PRECISIONS)
def test_presets_are_verified_in_every_precision(precision: str, part: int, tmp_path: Path) -> None:
    failed, weights = [], tmp_path / "model.safetensors"
    for name, spec, target, outliers in _chosen(part, precision):
        if outliers:
            save_with_outliers(spec, weights)
        static = TARGETS[target].static_cache and spec.decodes
        options = ExportOptions.of(
            target=target,
            precision=precision,
            weights=str(weights) if outliers else "random",
            cache_length=64 if static else None,
        )
        try:
            _export(spec, tmp_path / "x", options)
        except QualityError:
            continue  # the graphs are right; what is drawn at random cannot be rounded without loss
        except VerificationError as error:
            failed.append(f"{name} {target} {outliers}: {error}")
    assert not failed, "\n".join(failed)
