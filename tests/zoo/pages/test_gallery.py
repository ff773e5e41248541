"""The gallery: figures of each card, sizes, and what is taken from an earlier page."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

import pytest

from specs.language.catalog import Preset, presets
from specs.language.load import load
from specs.language.preset_files import preset_names
from zoo.pages import gallery, gallery_card
from zoo.pages.gallery import gallery_page
from zoo.pages.gallery_card import PRECISION, make_card
from zoo.reports.parameters import parameter_report
from zoo.reports.report import report

FIVE = ["bert-base", "gpt2", "t5-small", "mixtral-8x7b", "mamba-130m"]
CARD = 30_000
"""Most bytes of a card."""


@pytest.fixture(scope="module")
def listed() -> dict[str, Preset]:
    return {preset.name: preset for preset in presets()}


def data_of(page: str) -> dict[str, Any]:
    match = re.search(r'id="gallery-data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    found: dict[str, Any] = json.loads(match[1])
    return found


def check_card(preset: Preset) -> None:
    """Assert that the figures of a card are those of ``zoo params`` and ``zoo report``, and that it is small."""
    card, spec = make_card(preset), load(preset.name)
    counts, told = parameter_report(spec), report(spec, precision=PRECISION).as_dict()
    index = card.index
    assert index["parameters"] == counts.total_parameters == told["parameters"]["total"]
    assert index["active_parameters"] == counts.active_parameters == told["parameters"]["active"]
    assert index["weights"] == told["memory"]["weights"][PRECISION]
    cache = told["memory"].get("cache", {})
    assert index["cache_per_token"] == cache.get("bytes_per_token")
    assert index["state"] == cache.get("state_bytes")
    assert index["cache"] == cache.get("bytes")
    stages = {name: stage["at"]["matmul"] for name, stage in told["stages"].items()}
    assert {name: flops for name, (flops, _) in index["flops"].items()} == stages
    assert len(json.dumps({preset.name: vars(card)})) < CARD
    content = json.loads(zlib.decompress(base64.b64decode(card.content)))
    assert content["drawing"].startswith("<svg")
    assert f"name: {preset.name}" in content["yaml"]
    assert content["spec"]["architecture"] == spec.architecture


@pytest.mark.parametrize("name", FIVE)
def test_figures_of_five_are_those_of_the_command_line(listed: dict[str, Preset], name: str) -> None:
    check_card(listed[name])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_figures_of_all_are_those_of_the_command_line(listed: dict[str, Preset], part: int) -> None:
    for name in preset_names()[part::8]:
        check_card(listed[name])


def test_a_page_has_its_cards_and_asks_for_nothing(listed: dict[str, Preset]) -> None:
    page = gallery_page([listed["gpt2"], listed["tiny-gpt"]])
    assert list(data_of(page)["cards"]) == ["gpt2", "tiny-gpt"]
    assert "default-src 'none'" in page
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", page)
    assert 'data-node="gpt2"' in page
    assert 'data-node="tiny-gpt"' not in page  # it has no year


def test_cards_that_did_not_change_are_taken_from_the_earlier_page(
    listed: dict[str, Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def counted(preset: Preset) -> gallery_card.Card:
        made.append(preset.name)
        return make_card(preset)

    monkeypatch.setattr(gallery, "make_card", counted)
    steps: list[tuple[int, int]] = []
    first = gallery_page([listed["tiny-gpt"]], progress=lambda *step: steps.append(step))
    assert made == ["tiny-gpt"]
    assert steps == [(0, 1), (1, 1)]
    both = [listed["tiny-gpt"], listed["gpt2"]]
    page = gallery_page(both, first)
    assert made == ["tiny-gpt", "gpt2"]
    assert gallery_page(both, page) == page
    assert made == ["tiny-gpt", "gpt2"]
    for damaged in (
        "",
        "no page",
        page.replace('"format":1', '"format":0'),
        page.replace('"digest"', '"digests"'),
    ):
        made.clear()
        assert gallery_page(both[:1], damaged) == first
        assert made == ["tiny-gpt"]
    monkeypatch.setattr(gallery_card, "_source", lambda: "other code")
    made.clear()
    gallery_page(both[:1], first)
    assert made == ["tiny-gpt"]


@pytest.mark.slow
def test_worker_processes_make_the_same_cards(
    listed: dict[str, Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = [listed["tiny-gpt"], listed["gpt2"]]
    alone = gallery_page(chosen)
    monkeypatch.setattr(gallery, "_ENOUGH", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert gallery_page(chosen) == alone
