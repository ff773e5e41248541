"""The studio in a real browser: typing, clicking, fixing, comparing and exporting."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.studio_page import StudioPage, counted, studio

__all__ = ["studio"]

pytestmark = pytest.mark.browser

CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
HEADS = "#controls [data-id='decoder.block.attention.heads']"


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


def test_edits_in_quick_succession_are_all_made(studio: StudioPage) -> None:
    studio.open()
    studio.click("#view-controls")
    studio.browser.run(
        """
        for (const [id, kind] of [["position", "rope"], ["decoder.block.norm", "rms_norm"]]) {
          const menu = document.querySelector(`#controls [data-id='${id}']`);
          menu.value = kind;
          menu.dispatchEvent(new Event("change"));
        }
        const heads = document.querySelector(arguments[0]);
        for (const _ of [1, 2]) heads.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowUp" }));
        """,
        HEADS,
    )
    changes = ["position.kind=rope", "decoder.block.norm.kind=rms_norm", "decoder.block.attention.heads=24"]
    count = counted("gpt2", *(part for change in changes for part in ("--set", change)))
    studio.until(lambda: studio.count() == count)
    studio.until(lambda: "heads: 24" in studio.text())


def test_a_reload_keeps_an_edit_that_the_address_does_not_hold_yet(studio: StudioPage) -> None:
    studio.open()
    studio.browser.run("history.replaceState = () => {}")  # as before the address is written
    studio.type("layers: 12", "layers: 7")
    studio.browser.driver.refresh()
    studio.settle()
    assert "layers: 7" in studio.text()
    assert "decoder.layers 12 → 7" in studio.browser.one(".changes").text


def test_another_link_in_the_same_tab_is_opened(studio: StudioPage) -> None:
    studio.open()
    studio.type("layers: 12", "layers: 3")
    address = studio.browser.driver.current_url
    studio.type("layers: 3", "layers: 5")
    studio.browser.driver.get(address)
    text = "return document.querySelector('.cm-content')?.innerText ?? ''"
    studio.until(lambda: "layers: 3" in studio.browser.run(text))
    studio.settle()
    assert studio.count() == counted("gpt2", "--set", "decoder.layers=3")


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


def test_a_problem_is_marked_no_more_though_an_edit_overtakes_the_answer_that_solves_it(
    studio: StudioPage,
) -> None:
    studio.open()
    for old, new in (("heads: 12", "heads: 16"), ("heads: 16", "heads: 13")):
        studio.type(old, new)
        time.sleep(0.6)  # edits in quick succession are undone together
    studio.until(lambda: studio.browser.all(".cm-lint-marker-error"))
    studio.browser.run(
        """
        const { parse } = JSON;
        JSON.parse = (text) => {
          const answer = parse(text);
          if (answer.part === "spec") {
            JSON.parse = parse;
            document.getElementById("undo").click();
          }
          return answer;
        };
        document.getElementById("undo").click();
        """
    )
    studio.until(lambda: "heads: 12" in studio.browser.one(".cm-content").text)
    studio.settle()
    assert studio.browser.all(".cm-lint-marker-error") == []
    assert not studio.browser.one("#problems").is_displayed()


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


def test_shapes_have_the_chosen_sizes_and_wide_drawings_scroll_rather_than_shrink(
    studio: StudioPage,
) -> None:
    studio.open()
    studio.browser.one("body").send_keys(Keys.CONTROL, "o")
    studio.browser.one("dialog input").send_keys("t5-small", Keys.ENTER)
    studio.until(lambda: studio.browser.one("#label").text == "t5-small")
    studio.settle()
    texts = studio.browser.run(
        "return [...document.querySelectorAll('#picture text')].map((each) => each.textContent)"
    )
    assert "1 \u00d7 1,024 \u00d7 32,128" in texts
    assert not [text for text in texts if text.startswith("B ")]
    studio.browser.resize(390)
    studio.click("#tab-drawing")
    scale = "const svg = document.querySelector('#picture svg'); return svg.clientWidth / svg.getAttribute('width')"
    assert studio.browser.run(scale) >= 0.6
    assert studio.browser.run("return document.documentElement.scrollWidth") <= 390


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
    names = [item.text for item in studio.browser.all(".stages li")]
    assert "verify" in names
    assert len(names) == len([n for i, n in enumerate(names) if i == 0 or names[i - 1] != n])
    assert "Next: zoo run build/tiny-gpt --ids 1,2,3" in studio.browser.one(".result").text
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
