"""Drawings in a real browser, with whatever fonts it has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from specs.language.load import load
from zoo.drawing import draw_svg
from zoo.drawing.colours import COLOURS

if TYPE_CHECKING:
    from tests.browser.conftest import Browser

pytestmark = pytest.mark.browser

PRESETS = ["bert-base", "t5-small", "deepseek-v3", "stablelm-2-12b", "whisper-tiny", "bloom-560m"]
OUTSIDE = """
return [...document.querySelectorAll("g")].flatMap((group) => {
  const shape = group.querySelector("rect, circle");
  if (!shape) return [];
  const box = shape.getBBox();
  return [...group.querySelectorAll("text")].filter((text) => {
    const own = text.getBBox();
    return own.x < box.x || own.x + own.width > box.x + box.width ||
      own.y < box.y - 1 || own.y + own.height > box.y + box.height + 1;
  }).map((text) => text.textContent);
});
"""
"""The texts that reach out of their boxes."""


@pytest.fixture(params=PRESETS)
def drawing(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"{request.param}.svg"
    path.write_text(draw_svg(load(request.param)), encoding="utf-8")
    return path


def test_text_stays_within_its_box_and_nothing_else_is_asked_for(browser: Browser, drawing: Path) -> None:
    browser.open(drawing)
    assert len(browser.all("text")) > 20
    assert browser.run(OUTSIDE) == []
    assert browser.errors() == []
    assert browser.requests() == [drawing.as_uri()]


def test_colours_follow_the_reader(browser: Browser, drawing: Path) -> None:
    for number, scheme in enumerate(("light", "dark")):
        browser.open(drawing, scheme=scheme)
        fill = browser.run('return getComputedStyle(document.querySelector("rect")).fill')
        red, green, blue = (int(COLOURS["ground"][number][i : i + 2], 16) for i in (1, 3, 5))
        assert fill == f"rgb({red}, {green}, {blue})"
