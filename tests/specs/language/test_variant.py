"""A variant names its base and its changes, and claims nothing that only its base may claim."""

from __future__ import annotations

import pytest

from specs.forms.resolved import resolved
from specs.language.load import load, read
from specs.language.variant import CLAIMS
from specs.model.model import Model


def _claims(model: Model) -> tuple[str, str, int | None, int | None]:
    return model.summary, model.source, model.year, model.expect.parameters


@pytest.mark.parametrize(
    ("assignments", "summary"),
    [
        (["decoder.layers=6"], "Variant of gpt2: decoder.layers=6"),
        (["decoder.layers=6", "position.kind=rope"], "Variant of gpt2: decoder.layers=6, position.kind=rope"),
        (
            ["position={kind: rope, theta: 1.0e4}"],
            "Variant of gpt2: position.kind=rope, position.theta=10000.0",
        ),
        (["decoder.layers=6", "name=small"], "Variant of gpt2: decoder.layers=6"),
        (["name=mine"], "Same architecture as gpt2"),
        (["decoder.layers=6", "summary=Half of it"], "Half of it"),
    ],
)
def test_assignments_make_a_variant(assignments, summary):
    assert _claims(load("gpt2", assignments)) == (summary, "", None, None)


def test_a_file_that_extends_is_a_variant(tmp_path):
    (tmp_path / "half.yaml").write_text("extends: gpt2\nname: half\ndecoder: {layers: 6}\n")
    (tmp_path / "same.yaml").write_text("extends: half.yaml\nname: same\n")
    assert _claims(load(tmp_path / "half.yaml")) == ("Variant of gpt2: decoder.layers=6", "", None, None)
    assert _claims(load(tmp_path / "same.yaml")) == ("Same architecture as half", "", None, None)
    on_top = load(tmp_path / "half.yaml", ["d_model=384"])
    assert _claims(on_top) == ("Variant of half: d_model=384", "", None, None)


def test_a_variant_keeps_what_it_says_itself(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "extends: gpt2\nname: m\nsummary: Ours\nsource: Us\nyear: 2026\nexpect: {parameters: 7}\n"
    )
    assert _claims(load(path)) == ("Ours", "Us", 2026, 7)


def test_many_changes_are_counted(tmp_path):
    sizes = ["vocab_size=99", "d_model=24", "decoder.layers=1", "context_length=9", "position.kind=rope"]
    assert load("gpt2", sizes).summary.endswith("context_length=9 and 1 more")
    assert len(load("gpt2", [f"summary={'x' * 9}", "d_model=24"]).summary) == 9


def test_presets_share_the_publication_of_the_preset_that_they_extend():
    medium = load("gpt2-medium")
    assert (medium.source, medium.year) == (load("gpt2").source, 2019)


def test_the_resolved_spec_of_a_variant_has_no_claim_of_its_base():
    data = resolved(load("gpt2", ["decoder.layers=6"]))
    assert {key for key in CLAIMS if key in data} == {"summary"}
    assert {key for key in CLAIMS if key in read("gpt2").data} == set(CLAIMS)
