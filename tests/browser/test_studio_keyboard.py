"""The studio without a mouse: the focus stays where work goes on, and never leads out of sight."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.studio_page import StudioPage, studio

__all__ = ["studio"]

pytestmark = pytest.mark.browser

HEADS = "#controls [data-id='decoder.block.attention.heads']"
FOCUS = "return document.activeElement.closest('.cm-editor') ? 'editor' : document.activeElement.id"


def press(studio: StudioPage, *keys: str) -> None:
    studio.browser.driver.switch_to.active_element.send_keys(*keys)


def test_the_focus_moves_to_the_text_that_a_button_has_fixed(studio: StudioPage) -> None:
    studio.open()
    studio.type("heads: 12", "heads: 13")
    studio.until(lambda: "shown" in str(studio.browser.one("#problems").get_attribute("class")))
    for _ in range(10):
        press(studio, Keys.TAB)
        if studio.browser.run("return document.activeElement.className") == "fix":
            break
    press(studio, Keys.ENTER)
    studio.settle()
    studio.until(lambda: not studio.browser.all(".fix"))
    assert studio.browser.run(FOCUS) == "editor"


def test_undo_in_a_control_takes_a_step_back(studio: StudioPage) -> None:
    studio.open()
    studio.click("#view-controls")
    value = "return document.querySelector(arguments[0]).value"
    studio.browser.one(HEADS).send_keys(Keys.ARROW_UP)
    studio.until(lambda: studio.browser.run(value, HEADS) == "16")
    press(studio, Keys.CONTROL, "z")
    studio.until(lambda: studio.browser.run(value, HEADS) == "12")
    studio.click("#view-yaml")


def test_each_control_is_one_stop_and_leads_to_its_key(studio: StudioPage) -> None:
    studio.open()
    studio.click("#view-controls")
    studio.browser.one(HEADS).send_keys(Keys.TAB)
    following = studio.browser.run(
        "const fields = [...document.querySelectorAll('#controls [data-id]')].filter((field) => field.checkVisibility());"
        "return fields[fields.indexOf(document.querySelector(arguments[0])) + 1] === document.activeElement",
        HEADS,
    )
    assert following
    studio.browser.one(HEADS).send_keys(Keys.ALT, Keys.ENTER)
    assert studio.browser.run(FOCUS) == "editor"
    assert "heads: 12" in studio.browser.one(".cm-linked").text


def test_a_part_leads_to_its_control(studio: StudioPage) -> None:
    studio.open()
    studio.click("#view-controls")
    studio.click("#picture [data-keys='decoder.block.feed_forward']")
    linked = "return document.querySelector('#controls .row.linked [data-id]').dataset.id"
    assert studio.browser.run(linked) == "decoder.block.feed_forward"
    studio.click("#view-yaml")


def test_the_focus_stays_in_a_card_that_is_drawn_again(studio: StudioPage) -> None:
    studio.open()
    studio.browser.run("document.querySelector('#card-nearest .jump').focus()")
    press(studio, Keys.ENTER)
    studio.settle()
    within = "return document.activeElement.closest('.card')?.id"
    assert studio.browser.run(within) == "card-nearest"


def test_the_skip_link_keeps_the_spec_in_the_address(studio: StudioPage) -> None:
    studio.open(width=390)
    before = urlsplit(studio.browser.driver.current_url).fragment
    studio.browser.one("body").send_keys(Keys.TAB)
    press(studio, Keys.ENTER)
    assert studio.browser.run(FOCUS) == "figures"
    assert studio.browser.one("#figures").is_displayed()
    assert urlsplit(studio.browser.driver.current_url).fragment == before


def test_on_a_phone_a_part_opens_its_keys_and_tab_stays_in_the_pane(studio: StudioPage) -> None:
    studio.open(width=390)
    studio.click("#tab-drawing")
    studio.click("#picture [data-keys='decoder.block.attention']")
    assert studio.browser.one("#spec").is_displayed()
    assert "heads: 12" in studio.browser.one(".cm-linked").text
    assert studio.browser.run(FOCUS) == "editor"
    press(studio, Keys.ESCAPE)
    press(studio, Keys.TAB)
    assert studio.browser.run("return document.activeElement.closest('#figures, #drawing')") is None


def test_escape_closes_the_dialog_and_tab_leaves_the_list_of_presets(studio: StudioPage) -> None:
    studio.open()
    studio.browser.one("body").send_keys(Keys.CONTROL, "o")
    search = studio.browser.one("dialog input[type=search]")
    search.send_keys("llama", Keys.TAB)
    assert studio.browser.run("return Boolean(document.activeElement.closest('.presets'))")
    press(studio, Keys.TAB)
    assert studio.browser.run("return document.activeElement.tagName") == "TEXTAREA"
    search.send_keys(Keys.ESCAPE)
    assert not studio.browser.one("#dialog").is_displayed()
