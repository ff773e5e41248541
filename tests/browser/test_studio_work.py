"""The studio places models on meshes, measures, trains, writes checkpoints and exports with a checkpoint's weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from cli.studio.link import fragment_of
from tests.browser.studio_page import StudioPage, studio
from tests.cli.studio.test_works import small_gpt2

__all__ = ["studio"]

pytestmark = pytest.mark.browser

CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")


def open_preset(studio: StudioPage, name: str) -> None:
    studio.browser.one("body").send_keys(Keys.CONTROL, "o")
    studio.browser.one("dialog input").send_keys(name, Keys.ENTER)
    studio.until(lambda: studio.browser.one("#label").text == name)
    studio.settle()


def card(studio: StudioPage, name: str, text: str) -> str:
    """The text of a card that is scrolled to, once it has some text."""
    studio.browser.run(f"document.getElementById('card-{name}').scrollIntoView()")
    studio.until(lambda: text in studio.browser.one(f"#card-{name}").text)
    return studio.browser.one(f"#card-{name}").text


def fill(studio: StudioPage, selector: str, value: str) -> None:
    box = studio.browser.one(selector)
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(value, Keys.TAB)


def test_a_mesh_follows_the_edit_the_number_and_the_kind_of_devices(studio: StudioPage) -> None:
    studio.open()
    assert "of 80.0 GB" in card(studio, "mesh", "Training, per device")
    assert studio.browser.one("#card-mesh").text.count("fits") == 2
    fill(studio, "#mesh-number", "3")
    studio.until(lambda: "dp 3 · tp 1 · pp 1: trains" in studio.browser.one("#mesh-split").text)
    Select(studio.browser.one("#mesh-device")).select_by_value("t4")
    text = card(studio, "mesh", "of 16.0 GB")
    assert "to serve" in text
    open_preset(studio, "llama-3-8b")
    card(studio, "mesh", "no room")
    fill(studio, "#mesh-number", "8")
    studio.until(lambda: len(Select(studio.browser.one("#mesh-split")).options) == 4)  # one t4 in a node
    before = card(studio, "mesh", "Training, per device")
    Select(studio.browser.one("#mesh-split")).select_by_index(3)
    studio.until(lambda: studio.browser.one("#card-mesh").text != before)
    assert studio.browser.errors() == []


def test_this_machine_is_measured_by_a_button_and_is_a_device_then(studio: StudioPage) -> None:
    studio.open()
    assert "this" not in studio.browser.one("#card-fits").text.split()
    card(studio, "roofline", "Measure this machine")
    studio.click("#measure")
    studio.until(lambda: "as measured" in studio.browser.one("#card-roofline").text)
    studio.settle()
    assert not studio.browser.all("#measure")
    assert "this" in studio.browser.one("#card-fits").text.split()


SPAN = "const box = arguments[0].getBBox(); return [box.y, box.y + box.height];"


def test_a_spec_is_trained_against_its_base_with_live_curves(studio: StudioPage) -> None:
    studio.open()
    open_preset(studio, "tiny-gpt")
    studio.type("kind: learned", "kind: none")
    studio.click("#train")
    fill(studio, "#training [aria-label='Steps']", "40")
    studio.browser.one("#training .primary").click()
    studio.until(lambda: studio.browser.all("#losses .curve"))
    studio.until(lambda: studio.browser.all("#learned"), 120)
    assert studio.browser.one("#learned").text.startswith("tiny-gpt as edited learns it ")
    assert len(studio.browser.all("#losses .curve")) == 2
    spans = [studio.browser.run(SPAN, each) for each in studio.browser.all("#losses .curve, #losses .chance")]
    top, bottom = min(span[0] for span in spans), max(span[1] for span in spans)
    assert 14 <= top < bottom <= 170  # within the axes, of which short runs fill most
    assert bottom - top > 0.7 * (170 - 14)
    label = str(studio.browser.one("#losses svg").get_attribute("aria-label"))
    assert label.startswith("Loss in training: base ")
    assert "base: tiny-gpt" in studio.browser.one(".result table").text
    fill(studio, "#training [aria-label='Steps']", "5000")
    studio.browser.one("#training .primary").click()
    cancel = next(each for each in studio.browser.all("#training button") if each.text == "Cancel")
    studio.until(lambda: studio.browser.all("#losses .curve"))
    cancel.click()
    studio.until(lambda: "Cancelled" in studio.browser.one("dialog .result").text)
    assert studio.browser.errors() == []


def test_a_large_model_is_refused_with_the_way_to_reduce_it(studio: StudioPage) -> None:
    studio.open()
    studio.click("#train")
    layers, width = (studio.browser.one(f"#training [aria-label='{name}']") for name in ("Layers", "Width"))
    assert (layers.get_attribute("value"), width.get_attribute("value")) == ("2", "64")  # reduced by default
    for name in ("Layers", "Width"):
        box = studio.browser.one(f"#training [aria-label='{name}']")
        box.send_keys(Keys.CONTROL, "a")
        box.send_keys(Keys.DELETE)
    studio.browser.one("#training .primary").click()
    studio.until(
        lambda: "Reduce both models with Layers and Width" in studio.browser.one("dialog .result").text
    )


def test_a_checkpoint_is_written_opened_and_exported_with_its_weights(studio: StudioPage) -> None:
    studio.open("#" + fragment_of(small_gpt2()))
    studio.browser.one("body").send_keys(Keys.CONTROL, "s")
    fill(studio, "#checkpoint [aria-label='Directory of the checkpoint']", "../outside")
    studio.browser.one("#checkpoint .primary").click()
    studio.until(lambda: "The studio writes directories in" in studio.browser.one("dialog .result").text)
    assert "422" in studio.browser.errors()[0]
    fill(studio, "#checkpoint [aria-label='Directory of the checkpoint']", "kept")
    studio.browser.one("#checkpoint .primary").click()
    studio.until(lambda: studio.browser.all("#written"), 60)
    assert "GPT2LMHeadModel.from_pretrained" in studio.browser.one("dialog .result").text
    studio.browser.one("#checkpoint .primary").click()
    studio.until(lambda: studio.browser.one("#checkpoint .primary").text == "Replace it")
    studio.browser.one("dialog .close").click()
    studio.browser.one("body").send_keys(Keys.CONTROL, "o")
    studio.browser.one("dialog input").send_keys("./kept", Keys.ENTER)
    studio.until(lambda: studio.browser.one("#label").text == "kept with weights")
    studio.settle()
    studio.click("#export")
    menus = [Select(each) for each in studio.browser.all("dialog select")]
    assert menus[-1].first_selected_option.text == "kept"
    studio.click("dialog .primary")
    verdict = studio.until(lambda: studio.browser.all("#verdict"), 120)[0].text
    assert verdict.startswith("✓ Verified")
    record = (studio.folder / "build/kept/export.json").read_text()
    assert json.loads(record)["weights"] == "checkpoint"
    assert studio.browser.errors() == []


def test_a_spec_is_saved_and_replaced_when_confirmed(studio: StudioPage) -> None:
    studio.open()
    for layers, button in (("4", "Save"), ("5", "Replace it")):
        studio.type("layers: 12" if layers == "4" else "layers: 4", f"layers: {layers}")
        studio.browser.one("body").send_keys(Keys.CONTROL, "s")
        fill(studio, "dialog [aria-label='File']", "mine/four.yaml")
        save = studio.browser.one("dialog form .primary")
        save.click()
        if button == "Replace it":
            studio.until(lambda: studio.browser.one("dialog form .primary").text == "Replace it")
            assert "layers: 4" in (studio.folder / "mine/four.yaml").read_text()
            studio.browser.one("dialog form .primary").click()
        studio.until(
            lambda: (
                studio.browser.one("#label").text == "mine/four.yaml"
                and not studio.browser.all("dialog[open]")
            )
        )
        assert f"layers: {layers}" in (studio.folder / "mine/four.yaml").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_dialogs_fit_and_are_readable(studio: StudioPage, width: int, scheme: str) -> None:
    studio.open(width=width, scheme=scheme)
    for name in ("open", "save", "train", "export"):
        studio.browser.run("document.getElementById(arguments[0]).click()", name)
        box = studio.browser.one("dialog")
        studio.until(box.is_displayed)
        left, right, beyond = studio.browser.run(
            "const box = document.querySelector('dialog'), { left, right } = box.getBoundingClientRect();"
            "return [left, right, box.scrollWidth - box.clientWidth]"
        )
        assert 0 <= left < right <= width, name
        assert beyond <= 0, name
        assert studio.browser.run("return document.querySelector('dialog').contains(document.activeElement)")
        count, hard = studio.browser.run(CONTRAST)
        assert count > 5
        assert hard == [], name
        box.send_keys(Keys.ESCAPE)
        studio.until(lambda: not studio.browser.all("dialog[open]"))
