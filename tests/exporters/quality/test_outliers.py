"""Models with outliers are written in every precision on every target, or refused for what they lose, with the figure."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from exporters.export import export
from exporters.exported.model_source import model_source
from exporters.graph.precisions import PRECISIONS
from exporters.quality.quality import QualityError
from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS
from tests.exporters.quality import outliers

ROUNDED = [name for name, precision in PRECISIONS.items() if precision.rounds]


EVERY = [
    (model, target, precision)
    for target, precision, model in itertools.product(TARGETS, ROUNDED, outliers.MODELS)
    if precision not in TARGETS[target].unsupported_precisions
]
"""One in three of these is tried; test_every_preset.py has outliers in every structure."""


@pytest.fixture(scope="module")
def origins(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in outliers.MODELS.items()}


def outcome(origin: Path, directory: Path, target: str, precision: str) -> str:
    """The figures of quality of an export, or why they are not good enough; anything else is an error."""
    spec = model_source(str(origin)).spec
    static = TARGETS[target].static_cache and spec.decodes
    options = ExportOptions.of(
        weights=str(origin), target=target, precision=precision, cache_length=128 if static else None
    )
    try:
        found = export(spec, directory, options).quality
    except QualityError as error:
        return str(error).splitlines()[0]
    assert found is not None
    return ", ".join(f"{name} {value:.3g}" for name, value in found.figures.items())


@pytest.mark.slow
def test_an_encoder_with_outliers_is_written_in_int8(origins: dict[str, Path], tmp_path: Path) -> None:
    assert outcome(origins["bert"], tmp_path / "x", "cpu", "int8").startswith("cosine 1")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("model", "target", "precision"), EVERY[::3])
def test_outliers_are_written_or_refused_for_what_they_lose(
    model: str, target: str, precision: str, origins: dict[str, Path], tmp_path: Path
) -> None:
    found = outcome(origins[model], tmp_path / "x", target, precision)
    refused = found.startswith(f"{precision} loses too much")
    assert (tmp_path / "x").exists() != refused, found
    assert not refused or precision in ("int8", "int4"), found
