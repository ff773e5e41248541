"""Small valid specs that once ended in a traceback or a false failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.verification.cases import cases
from exporters.verification.reference import expect, real_places, reference_of
from exporters.verification.verified_model import narrowest_model
from specs.base.errors import UserError
from specs.language.load import load
from tests.thinned import one_in
from zoo.checks import check_behaviour
from zoo.components.router import Router

VALID = Path(__file__).with_name("valid")
NAMES = sorted(path.stem for path in VALID.glob("*.yaml"))
UNDECIDED = torch.tensor([True, False])


@one_in(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_valid_spec_passes_its_checks_and_is_exported(name: str, tmp_path: Path) -> None:
    spec = load(VALID / f"{name}.yaml")
    assert check_behaviour(spec).passed
    written = export(spec, tmp_path / "x", ExportOptions(target="cpu"))
    assert written.verification is not None
    assert written.verification.passed


@pytest.mark.parametrize("layout", ["genai", "optimum", "transformers-js"])
@pytest.mark.parametrize("name", NAMES)
def test_a_spec_of_no_family_is_refused_by_the_layouts_of_clients(
    name: str, layout: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=rf"layout {layout}: .* cannot load .*: .{{10}}"):
        export(load(VALID / f"{name}.yaml"), tmp_path / "x", ExportOptions(layout=layout))
    assert not list(tmp_path.iterdir())


def test_an_image_between_equal_experts_leaves_no_row_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = narrowest_model(load(VALID / "mixture_beside_texts.yaml"))
    reference = reference_of(subject, lambda stage: None)
    monkeypatch.setattr(Router, "margin", lambda self, logits: torch.zeros(logits.shape[:2]))
    found = expect(reference, cases(subject.spec), lambda case: None, lambda: None, None)
    assert found.tied


def test_outputs_of_pairs_are_compared_where_all_texts_are_decided() -> None:
    spec = load(VALID / "mixture_beside_texts.yaml")
    case = next(each for each in cases(spec) if each.batch.rows == 1 and each.encoder is not None)
    case = replace(case, decided=UNDECIDED)
    rows = {
        name: real_places(case, name, frozenset(), torch.float32).tolist()
        for name in ("image image_embeds", "logits_per_image", "image logits with texts", "logits_per_text")
    }
    images = 1 if case.encoder is None else case.encoder.rows
    assert rows == {
        "image image_embeds": [True] * images,
        "logits_per_image": [False] * images,
        "image logits with texts": [False] * images,
        "logits_per_text": UNDECIDED.tolist(),
    }
