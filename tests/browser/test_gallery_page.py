"""The page of ``zoo gallery`` in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from specs.language.catalog import presets
from specs.language.preset_files import preset_names
from tests.browser.conftest import Browser
from zoo.pages.gallery import gallery_page

pytestmark = pytest.mark.browser

CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
NAMES = ["bert-base", "gemma2-2b", "gpt2", "llama-7b", "mixtral-8x7b", "t5-small", "tiny-gpt"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gallery of seven presets."""
    path = tmp_path_factory.mktemp("gallery") / "gallery.html"
    chosen = [preset for preset in presets() if preset.name in NAMES]
    path.write_text(gallery_page(chosen), encoding="utf-8")
    return path


def shown(browser: Browser) -> list[str | None]:
    """The cards in sight, in order."""
    return [each.get_attribute("data-name") for each in browser.all(".cards li") if each.is_displayed()]


def view(browser: Browser, section: str, text: str) -> str:
    """The text of a section, once it is shown and has some text."""
    WebDriverWait(browser.driver, 60).until(
        lambda driver: browser.one(f"#{section}").is_displayed() and text in browser.one(f"#{section}").text
    )
    return browser.one(f"#{section}").text


def test_all_cards_are_there_with_their_drawings(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert shown(browser) == NAMES
    assert browser.one("#count").text == "7 of 7 models"
    WebDriverWait(browser.driver, 60).until(lambda driver: len(browser.all(".thumb svg")) >= 4)
    assert all(min(each.size.values()) > 100 for each in browser.all(".thumb svg")[:4])
    assert "46.7B parameters, 12.9B active" in browser.one("[data-name='mixtral-8x7b']").text
    assert browser.errors() == []
    assert all(url.startswith(("file:", "data:")) for url in browser.requests())


def test_search_and_filters_narrow_the_cards(browser: Browser, page: Path) -> None:
    browser.open(page)
    search = browser.one("#search")
    search.send_keys("moe")
    assert shown(browser) == ["mixtral-8x7b"]
    search.clear()
    search.send_keys("zebra")
    assert shown(browser) == []
    assert "No model matches \u201czebra\u201d." in browser.one("#none").text
    browser.one("#none button").click()
    assert shown(browser) == NAMES
    Select(browser.one("[data-facet=architecture]")).select_by_visible_text("encoder")
    assert shown(browser) == ["bert-base"]
    Select(browser.one("[data-facet=architecture]")).select_by_visible_text("all")
    Select(browser.one("[data-facet=features]")).select_by_value("sliding window")
    assert shown(browser) == ["gemma2-2b"]


def test_cards_are_sorted_by_figures(browser: Browser, page: Path) -> None:
    browser.open(page)
    order = Select(browser.one("#sort"))
    order.select_by_value("-parameters")
    assert shown(browser)[:2] == ["mixtral-8x7b", "llama-7b"]
    order.select_by_value("parameters")
    assert shown(browser)[0] == "tiny-gpt"
    order.select_by_value("year")
    assert (shown(browser)[0], shown(browser)[-1]) == ("bert-base", "tiny-gpt")  # of no known year: last
    order.select_by_value("name")
    assert shown(browser) == NAMES


def test_a_card_opens_and_back_returns(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.one("[data-name=gpt2] a").click()
    text = view(browser, "model", "124,439,808")
    for part in ("248.9 MB", "285 M", "zoo build gpt2", "FLOPs per new token", "text generation"):
        assert part.replace("248.9 MB", "249 MB") in text
    assert browser.one("#model svg").size["height"] > 400
    assert browser.driver.title.startswith("gpt2")
    browser.driver.back()
    WebDriverWait(browser.driver, 60).until(lambda driver: browser.one("#cards").is_displayed())
    browser.driver.forward()
    view(browser, "model", "124,439,808")
    browser.driver.refresh()  # the address names the model
    view(browser, "model", "124,439,808")
    assert browser.errors() == []


def test_two_models_are_compared(browser: Browser, page: Path) -> None:
    browser.open(page)
    for name in ("gpt2", "llama-7b"):
        browser.one(f"[data-name='{name}'] input").click()
    assert browser.one("#chosen").is_displayed()
    browser.one("#chosen a").click()
    text = view(browser, "pair", "ratio")
    assert "124,439,808 6,738,415,616 54.2 \u00d7" in text
    differences = {row.text.split()[0]: row.text for row in browser.all("#specs-of-pair tbody tr")}
    assert differences["position"] == "position learned rope"
    assert differences["d_model"] == "d_model 768 4096"
    assert differences["decoder.block.norm"] == "decoder.block.norm layer_norm rms_norm"
    assert differences["decoder.layers"] == "decoder.layers 12 32"
    assert len(browser.all("#pair svg")) == 2
    assert "zoo diff gpt2 llama-7b" in text
    assert browser.errors() == []


def test_the_tree_leads_to_models(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.one("[data-view=tree]").click()
    view(browser, "tree", "llama-7b")
    node = browser.one("#tree [data-node='mixtral-8x7b']")
    assert "after llama-7b:" in (
        node.find_element("css selector", "title").get_attribute("textContent") or ""
    )
    browser.run("arguments[0].focus()", node)
    assert len(browser.all("#tree .descent.lit")) >= 1
    node.send_keys(Keys.ENTER)
    view(browser, "model", "46,702,792,704")


def test_everything_is_reached_by_keys(browser: Browser, page: Path) -> None:
    browser.open(page)

    def press(*keys: str) -> None:
        for key in keys:
            browser.driver.switch_to.active_element.send_keys(key)

    browser.run("document.getElementById('search').focus()")
    press("gemma")
    assert shown(browser) == ["gemma2-2b"]
    press(*[Keys.TAB] * 5)  # the four choices, and then the card
    assert browser.driver.switch_to.active_element.text == "gemma2-2b"
    press(Keys.TAB, Keys.SPACE)
    assert "Choose a model to compare with gemma2-2b." in browser.one("#chosen").text
    browser.driver.switch_to.active_element.send_keys(Keys.SHIFT, Keys.TAB)
    press(Keys.ENTER)
    view(browser, "model", "2,614,341,888")
    assert browser.driver.switch_to.active_element.text == "gemma2-2b"  # the heading has the focus


def test_a_narrow_page_shows_the_whole_table_of_a_pair_and_readable_drawings(
    browser: Browser, page: Path
) -> None:
    browser.open(page, 390)
    browser.run("location.hash = '#gpt2~llama-7b'")
    view(browser, "pair", "ratio")
    table = "const {scrollWidth, clientWidth} = document.getElementById('costs-of-pair').parentElement; return scrollWidth - clientWidth"
    assert browser.run(table) <= 0
    browser.run("location.hash = '#t5-small'")
    assert "FLOPs of the encoder, 1,024 tokens" in view(browser, "model", "FLOPs per new token")
    scale = (
        "const svg = document.querySelector('#model svg'); return svg.clientWidth / svg.getAttribute('width')"
    )
    assert browser.run(scale) >= 0.6
    program = "const {scrollWidth, clientWidth} = document.querySelector('#model pre'); return scrollWidth - clientWidth"
    assert browser.run(program) <= 0


@pytest.mark.parametrize("place", ["", "#gemma2-2b", "#gpt2~llama-7b", "#tree"])
@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_overflows_and_everything_is_readable(
    browser: Browser, page: Path, width: int, place: str
) -> None:
    for scheme in ("light", "dark"):
        browser.open(page, width, scheme)
        browser.run("location.hash = arguments[0]", place)
        browser.driver.execute_async_script("setTimeout(arguments[0], 400)")
        assert browser.run(
            "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
        outside = browser.run(
            "return [...document.querySelectorAll('main *')].filter(e => !e.parentElement.closest('.scroll, pre, svg')"
            " && e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML.slice(0, 80))"
        )
        assert outside == []
        assert browser.run(CONTRAST)[1] == []
    assert browser.errors() == []


@pytest.mark.slow
def test_a_gallery_of_all_presets_loads_in_two_seconds(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "gallery.html"
    path.write_text(gallery_page(presets()), encoding="utf-8")
    assert path.stat().st_size < 12_000 * len(preset_names())
    browser.open(path)
    assert 0 < browser.processor_seconds() < 2
    assert len(browser.all(".cards li")) == len(preset_names())
    assert browser.errors() == []
