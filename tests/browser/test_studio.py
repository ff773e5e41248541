"""The studio in a real browser: typing, clicking, fixing, comparing and exporting."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from cli.studio.link import text_of_link
from tests.browser.conftest import Browser
from tests.cli.process import ZOO

pytestmark = pytest.mark.browser

CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
HEADS = "#controls [data-id='decoder.block.attention.heads']"


@dataclass
class StudioPage:
    """A studio that runs, and its page in a browser."""

    browser: Browser
    address: str
    folder: Path

    def open(self, fragment: str = "", width: int = 1400, scheme: str = "light") -> None:
        self.browser.prefer(scheme)
        self.browser.resize(width)
        self.browser.driver.get("about:blank")
        self.browser.errors()
        self.browser.requests()
        self.browser.driver.get(self.address + fragment)
        self.settle()

    def until(self, condition: Callable[[], Any], seconds: float = 60) -> Any:
        return WebDriverWait(self.browser.driver, seconds, poll_frequency=0.05).until(
            lambda driver: condition()
        )

    def settle(self) -> None:
        """Wait until the last edit is answered whole."""
        script = (
            "return Boolean(document.body.dataset.answered) && !document.body.classList.contains('asking')"
        )
        time.sleep(0.1)  # the page asks shortly after the last key
        self.until(lambda: self.browser.run(script))

    def click(self, selector: str) -> None:
        self.browser.one(selector).click()

    def text(self) -> str:
        """The text of the editor, which is in the address once it is answered."""
        return text_of_link(self.browser.driver.current_url)

    def count(self) -> int:
        return int(self.browser.run("return document.getElementById('count').textContent").replace(",", ""))

    def type(self, old: str, new: str) -> None:
        """Select a text in the editor by hand, and type another."""
        script = """
        const walker = document.createTreeWalker(document.querySelector(".cm-content"), NodeFilter.SHOW_TEXT);
        const line = [...document.querySelectorAll(".cm-line")].find((each) => each.textContent.includes(arguments[0]));
        const from = line.textContent.indexOf(arguments[0]);
        const place = (offset) => {
          const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
          for (let node = texts.nextNode(); node; node = texts.nextNode()) {
            if (offset <= node.length) return [node, offset];
            offset -= node.length;
          }
        };
        document.querySelector(".cm-content").focus();
        getSelection().setBaseAndExtent(...place(from), ...place(from + arguments[0].length));
        """
        self.browser.run(script, old)
        time.sleep(0.1)
        self.browser.driver.switch_to.active_element.send_keys(new, Keys.ESCAPE)
        self.settle()

    def choose(self, path: str, kind: str) -> None:
        """Choose a kind in the controls, and wait until the text has it."""
        Select(self.browser.one(f"#controls [data-id='{path}']")).select_by_value(kind)
        self.until(lambda: kind in self.browser.run("return document.querySelector('.cm-content').innerText"))
        self.settle()


@pytest.fixture(scope="module")
def studio(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudioPage]:
    folder = tmp_path_factory.mktemp("studio")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [*ZOO, "studio", "gpt2", "--no-browser", "--port", str(port)],
        cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    address = process.stdout.readline().partition(": ")[2].strip()
    try:
        yield StudioPage(browser, address, folder)
    finally:
        process.terminate()
        process.wait(20)


def counted(*arguments: str) -> int:
    """What ``zoo params`` counts."""
    told = subprocess.run(
        [*ZOO, "params", *arguments, "--json"], capture_output=True, text=True, check=False, timeout=100
    )
    total: int = json.loads(told.stdout)["total_parameters"]
    return total


def test_the_page_shows_all_figures_from_this_machine_alone(studio: StudioPage) -> None:
    studio.open()
    assert studio.browser.errors() == []
    own = urlsplit(studio.address).netloc
    assert {urlsplit(url).netloc for url in studio.browser.requests() if url.startswith("http")} == {own}
    assert studio.count() == 124_439_808
    assert "✓ Published for gpt2: 124,439,808" in studio.browser.one("#card-total").text
    for card in ("base", "nearest", "flops", "cache", "training", "roofline", "fits"):
        assert studio.browser.one(f"#card-{card}").text.count("\n") > 2, card
    assert len(studio.browser.all("#picture [data-keys]")) == 9


def test_rope_and_rms_norm_by_the_controls_count_as_zoo_params(studio: StudioPage) -> None:
    studio.open()
    studio.click("#view-controls")
    studio.choose("position", "rope")
    studio.choose("decoder.block.norm", "rms_norm")
    assert studio.count() == counted(
        "gpt2", "--set", "position.kind=rope", "--set", "decoder.block.norm.kind=rms_norm"
    )
    changes = studio.browser.one(".changes").text
    assert "position learned → rope" in changes
    assert "decoder.block.norm layer_norm → rms_norm" in changes
    marked = {part.get_attribute("data-keys") for part in studio.browser.all("#picture .changed")}
    assert {"position", "decoder.block.norm"} <= marked
    assert "decoder.block.feed_forward" not in marked
    assert studio.browser.errors() == []


def test_typed_keys_are_answered_and_undone(studio: StudioPage) -> None:
    studio.open()
    studio.type("layers: 12", "layers: 6")
    assert studio.count() == counted("gpt2", "--set", "decoder.layers=6")
    assert "layers: 6" in studio.text()
    studio.click("#undo")
    studio.settle()
    studio.until(lambda: studio.count() == 124_439_808)


def test_heads_step_to_numbers_that_work(studio: StudioPage) -> None:
    studio.open()
    studio.click("#view-controls")
    heads = studio.browser.one(HEADS)
    heads.send_keys(Keys.ARROW_UP)
    value = "return document.querySelector(arguments[0])?.value"  # the controls are made anew
    studio.until(lambda: studio.browser.run(value, HEADS) == "16")
    studio.settle()
    studio.until(
        lambda: "16 heads" in studio.browser.run("return document.getElementById('picture').textContent")
    )
    assert studio.count() == 124_439_808


def test_a_problem_is_fixed_by_its_button_and_the_last_figures_stay(studio: StudioPage) -> None:
    studio.open()
    studio.type("heads: 12", "heads: 13")
    studio.until(lambda: "must divide d_model, which is 768" in studio.browser.one("#problems").text)
    assert "stale" in str(studio.browser.one("#figures").get_attribute("class"))
    assert studio.count() == 124_439_808
    assert studio.browser.all(".cm-lintRange-error")
    button = next(each for each in studio.browser.all(".fix") if each.text == "Use 16")
    button.click()
    studio.settle()
    studio.until(lambda: not studio.browser.all(".fix"))
    assert "heads: 16" in studio.text()
    assert "stale" not in str(studio.browser.one("#figures").get_attribute("class"))


def test_parts_and_keys_lead_to_each_other(studio: StudioPage) -> None:
    studio.open()
    part = "#picture [data-keys='decoder.block.feed_forward']"
    studio.click(part)
    assert "hidden: 3072" in studio.browser.one(".cm-linked").text
    studio.type("std: 0.02", "std: 0.02")
    studio.type("kind: multi_head", "kind: multi_head")
    linked = [each.get_attribute("data-keys") for each in studio.browser.all("#picture .linked")]
    assert linked == ["decoder.block.attention"]
    studio.browser.run("document.querySelector(arguments[0]).focus()", part)
    studio.browser.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert studio.browser.run("return document.activeElement.dataset.keys") == "decoder.block.norm"


def test_keys_and_values_are_completed(studio: StudioPage) -> None:
    studio.open()
    studio.type("kind: learned", "kind: a")
    studio.browser.driver.switch_to.active_element.send_keys("l")
    names = (
        "return [...document.querySelectorAll('.cm-tooltip-autocomplete li')].map((each) => each.textContent)"
    )
    assert "alibi" in studio.until(lambda: studio.browser.run(names))
    time.sleep(
        0.3
    )  # the editor accepts nothing in the first 75 ms of a list, which may have opened under the next key
    studio.browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    studio.settle()
    assert "position: {kind: alibi}" in studio.text()


def test_an_address_holds_the_spec_and_its_base(studio: StudioPage) -> None:
    studio.open()
    studio.type("layers: 12", "layers: 3")
    address = studio.browser.driver.current_url
    studio.open("#" + urlsplit(address).fragment)
    assert "layers: 3" in studio.text()
    assert studio.count() == counted("gpt2", "--set", "decoder.layers=3")
    assert "decoder.layers 12 → 3" in studio.browser.one(".changes").text


def test_a_preset_is_opened_with_the_keyboard_exported_and_verified(studio: StudioPage) -> None:
    studio.open()
    studio.browser.one("body").send_keys(Keys.CONTROL, "o")
    studio.browser.one("dialog input").send_keys("tiny-gpt", Keys.ENTER)
    studio.until(lambda: studio.browser.one("#label").text == "tiny-gpt")
    studio.settle()
    assert studio.count() == 223_616
    studio.click("#export")
    studio.click("dialog .primary")
    verdict = studio.until(lambda: studio.browser.all("#verdict"), 120)[0].text
    assert verdict.startswith("✓ Verified in onnxruntime")
    assert "equal" in studio.browser.one(".result table").text
    assert (studio.folder / "build/tiny-gpt/export.json").is_file()
    assert studio.browser.errors() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_fits_and_is_readable(studio: StudioPage, width: int, scheme: str) -> None:
    studio.open(width=width, scheme=scheme)
    assert studio.browser.run("return document.documentElement.scrollWidth") <= width
    if width == 1400:
        count, hard = studio.browser.run(CONTRAST)
        assert count > 100
        assert hard == []
    else:
        for pane in ("drawing", "figures", "spec"):
            studio.click(f"#tab-{pane}")
            shown = [
                each
                for each in ("spec", "drawing", "figures")
                if studio.browser.one(f"#{each}").is_displayed()
            ]
            assert shown == [pane]
        assert studio.browser.one("#totals").text == "124,439,808 parameters"
        studio.click("#tab-figures")
        assert studio.browser.run("return document.getElementById('figures').scrollWidth") <= width
    assert studio.browser.errors() == []
