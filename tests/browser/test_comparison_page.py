"""The page of ``zoo compare -o page.html`` in a real browser."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from zoo.pages.comparison_page import comparison_page

if TYPE_CHECKING:
    from tests.browser.conftest import Browser

pytestmark = pytest.mark.browser

CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
LABELS = ["tiny-gpt", "position.kind=rope", "</script><b>&", "decoder.block.feed_forward={kind: gated, hidden: 170}", "e", "f"]  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("comparison") / "page.html"
    header = ("", "spec", "parameters", "loss")
    rows = [[name, label, "1,234,567", "0.123"] for name, label in zip("ABCDEF", LABELS, strict=True)]
    curves = [
        (f"{row[0]}: {row[1]}", [(step, 3.0 * math.exp(-step * i / 99)) for step in range(1, 100)])
        for i, row in enumerate(rows)
    ]
    curves[5] = ("F: diverged", [(1, 2.9), (2, math.inf), (3, math.nan)])
    notes, warnings = ["B differs from A: position learned → rope"], ["F (f) diverged"]
    page = comparison_page(
        "copy, length 8", "300 steps", header, rows, curves, (2.8, "a guess"), notes, warnings
    )
    path.write_text(page, encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_is_complete_and_nothing_overflows(browser: Browser, path: Path, width: int) -> None:
    browser.open(path, width)
    assert browser.errors() == []
    assert all(url.startswith(("file:", "data:")) for url in browser.requests())
    assert [each.text.split("\n")[0] for each in browser.all("h1, h2")] == [
        "copy, length 8",
        "Results",
        "Loss in training",
    ]
    assert [each.text for each in browser.all("td:nth-child(2)")] == LABELS
    assert [each.text for each in browser.all("p.bad")] == ["F (f) diverged"]
    assert len(browser.all(".chart .line")) == len(browser.all(".keys li")) == 6
    assert all(line.size["width"] > 100 for line in browser.all(".chart .line")[:5])
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_lines_are_distinguishable_and_text_is_readable(browser: Browser, path: Path) -> None:
    browser.open(path, scheme="light")
    look = (
        "return [...document.querySelectorAll('.chart .line')].map(e => getComputedStyle(e))"
        ".map(s => s.stroke + s.strokeDasharray)"
    )
    light = browser.run(look)
    assert len(set(light)) == 6
    assert browser.run(CONTRAST)[1] == []
    browser.prefer("dark")
    assert len(set(browser.run(look)) - set(light)) == 6
    assert browser.run(CONTRAST)[1] == []


def test_rows_have_the_colours_of_their_lines(browser: Browser, path: Path) -> None:
    browser.open(path)
    look = (
        "return [...document.querySelectorAll(arguments[0])].map(e => getComputedStyle(e, '::before'))"
        ".map(s => s.borderTopColor + s.borderTopStyle)"
    )
    rows, keys = browser.run(look, "td .key"), browser.run(look, ".keys li")
    assert rows == keys
    assert len(set(rows)) == 6


def test_pointing_at_the_chart_reads_the_losses(browser: Browser, path: Path) -> None:
    browser.open(path)
    figure = browser.one("#curves figure")
    ActionChains(browser.driver).move_to_element(browser.one("#curves svg")).perform()
    assert browser.one("#curves figcaption").text.startswith("Step ")
    first = browser.one(".keys output").text
    figure.send_keys(Keys.HOME)
    assert browser.one("#curves figcaption").text == "Step 1"
    assert [each.text for each in browser.all(".keys output")][:2] == ["3.00", "2.97"]
    assert first != ""
    assert browser.errors() == []


def test_the_name_of_the_rule_is_not_over_the_curves(browser: Browser, path: Path) -> None:
    browser.open(path)
    text = next(each for each in browser.all("#curves svg text") if each.text == "a guess")
    chart = browser.one("#curves svg").rect
    assert text.rect["x"] > chart["x"] + chart["width"] / 2  # curves begin at the guess, and fall
