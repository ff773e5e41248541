"""The page of ``zoo catalog`` in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from exporters.export import export
from exporters.making.catalog import catalog
from exporters.steps.options import ExportOptions
from specs.language.load import load
from specs.language.preset_files import preset_names
from tests.browser.conftest import Browser
from tests.catalogs import catalog_of_presets

pytestmark = pytest.mark.browser

CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
NAMES = ["bert/base", "gpt/cpu-int8", "gpt/fp32", "odd &'<b>\"", "t5"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog of five artefacts of four models, one of them renamed since the last one."""
    directory = tmp_path_factory.mktemp("zoo")

    def made(name: str, preset: str, *assignments: str, **options: Any) -> None:
        values = {"weights": "none", "verify": False, **options}
        export(load(preset, assignments), directory / name, ExportOptions(**values))

    made("gpt/fp32", "tiny-gpt", weights="random", verify=True)
    made("gpt/cpu-int8", "tiny-gpt", weights="random", target="cpu", precision="int8")
    made("bert/base", "bert-base")
    made("t5", "t5-small")
    earlier = catalog(directory, None, "2026-01-01 00:00 UTC").data
    made("odd &'<b>\"", "tiny-gpt", "decoder.layers=2", "summary=<script>alert(1)</script>")
    found = catalog(directory, earlier, "2026-01-02 00:00 UTC")
    path = directory / "catalog.html"
    path.write_text(found.page(directory), encoding="utf-8")
    return path


def shown(browser: Browser) -> list[str | None]:
    """The artefacts that the table shows, in order."""
    return [
        each.get_attribute("data-name")
        for each in browser.all("#artefacts tr[data-name]")
        if each.is_displayed()
    ]


def choose(browser: Browser, facet: str, value: str) -> None:
    """Choose a value of a filter."""
    browser.run(
        "const select = document.querySelector(`[data-facet=${arguments[0]}]`); select.value = arguments[1];"
        "select.dispatchEvent(new Event('change'));",
        facet,
        value,
    )


def opened(browser: Browser, name: str) -> str:
    """The text of an artefact's details, once they are shown."""
    row = next(each for each in browser.all("tr[data-name]") if each.get_attribute("data-name") == name)
    row.find_element("css selector", "button").click()
    WebDriverWait(browser.driver, 60).until(
        lambda driver: row.find_element("css selector", "button").get_attribute("aria-expanded") == "true"
    )
    return browser.one("tr.detail").text


def test_the_table_is_there_at_once_and_from_the_file_alone(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert 0 < browser.processor_seconds() < 3
    assert browser.errors() == []
    assert all(url.startswith(("file:", "data:")) for url in browser.requests())
    assert shown(browser) == NAMES
    assert browser.one("#count").text == "5 of 5 artefacts"
    assert browser.all("tr.detail") == []
    changes = browser.one("#changes").text
    assert "2026-01-02 00:00 UTC: 1 added" in changes
    assert "odd &'<b>\" added" in changes


def test_searching_and_filters_narrow_the_table(browser: Browser, page: Path) -> None:
    browser.open(page)
    search = browser.one("#search")
    search.send_keys("GPT int8")
    assert shown(browser) == ["gpt/cpu-int8"]
    assert browser.one("#count").text == "1 of 5 artefacts"
    search.send_keys(" nothing")
    assert shown(browser) == []
    search.send_keys(Keys.ENTER)  # sends no form
    search.clear()
    search.send_keys(Keys.SPACE)
    for facet, value, names in (
        ("architecture", "encoder-decoder", ["t5"]),
        ("parameters", "100M to 1B", ["bert/base"]),
        ("target", "cpu", ["gpt/cpu-int8"]),
        ("precision", "int8", ["gpt/cpu-int8"]),
        ("verification", "verified", ["gpt/fp32"]),
        ("layout", "onnx", NAMES),
    ):
        choose(browser, facet, value)
        assert shown(browser) == names
        choose(browser, facet, "")
    assert shown(browser) == NAMES
    assert browser.errors() == []


def test_columns_are_sorted_by_value(browser: Browser, page: Path) -> None:
    browser.open(page)
    head = next(each for each in browser.all("#artefacts th") if each.text == "parameters")
    head.find_element("css selector", "button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert shown(browser)[-2:] == ["t5", "bert/base"]
    head.find_element("css selector", "button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert shown(browser)[:2] == ["bert/base", "t5"]


def test_details_are_shown_on_demand_one_at_a_time(browser: Browser, page: Path) -> None:
    browser.open(page)
    text = opened(browser, "gpt/fp32")
    for part in ("Load it with ONNX Runtime", "comparisons passed", "model.onnx.data", "223,616", "MFLOP"):
        assert part in text
    assert len(browser.all("tr.detail svg")) == 1
    assert browser.one("tr.detail svg").size["height"] > 100
    text = opened(browser, "odd &'<b>\"")
    assert "<script>alert(1)</script>" in text
    assert len(browser.all("tr.detail")) == 1
    assert browser.errors() == []
    opened(browser, "gpt/fp32")
    choose(browser, "precision", "int8")  # what is filtered out is closed
    assert browser.all("tr.detail") == []


def test_details_still_on_their_way_are_not_shown_once_filtered_out(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.run(
        "document.querySelector(\"tr[data-name='gpt/fp32'] button\").click();"
        "const select = document.querySelector('[data-facet=precision]');"
        "select.value = 'int8'; select.dispatchEvent(new Event('change'));"
    )
    browser.driver.execute_async_script("setTimeout(arguments[0], 500)")
    assert browser.all("tr.detail") == []
    assert shown(browser) == ["gpt/cpu-int8"]


def test_back_and_forward_stay_on_the_page(browser: Browser, page: Path) -> None:
    browser.open(page)
    opened(browser, "t5")
    opened(browser, "bert/base")
    address = "return decodeURIComponent(location.hash)"

    def detail_of(name: str) -> None:
        row = f"tr[data-name='{name}'] + tr.detail"
        WebDriverWait(browser.driver, 60).until(lambda driver: browser.all(row))
        assert browser.run(address) == f"#{name}"

    browser.driver.back()
    detail_of("t5")
    browser.driver.back()
    WebDriverWait(browser.driver, 60).until(lambda driver: not browser.all("tr.detail"))
    assert browser.run(address) == ""
    assert shown(browser) == NAMES
    browser.driver.forward()
    detail_of("t5")
    browser.driver.forward()
    detail_of("bert/base")
    choose(browser, "precision", "int8")
    browser.driver.back()  # to an artefact that the filters hide
    detail_of("t5")
    assert shown(browser) == NAMES
    assert browser.errors() == []


def test_a_program_can_be_copied(browser: Browser, page: Path) -> None:
    browser.open(page)
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", grant)
    opened(browser, "gpt/fp32")
    button, code = browser.one("tr.detail .copy"), browser.one("tr.detail .program code")
    button.click()
    WebDriverWait(browser.driver, 60).until(lambda driver: button.text == "Copied")
    copied = browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == browser.run("return arguments[0].textContent", code)
    assert "import onnxruntime" in copied


def test_a_search_without_results_says_so(browser: Browser, page: Path) -> None:
    browser.open(page)
    none = browser.one("#none")
    assert not none.is_displayed()
    browser.one("#search").send_keys("zebra")
    choose(browser, "precision", "int8")
    assert none.is_displayed()
    assert "No artefact matches \u201czebra\u201d and precision int8." in none.text
    assert not browser.one("#artefacts table").is_displayed()
    none.find_element("css selector", "button").click()
    assert shown(browser) == NAMES
    assert browser.driver.switch_to.active_element.get_attribute("id") == "search"


def test_size_and_verification_are_in_sight_on_a_phone(browser: Browser, page: Path) -> None:
    browser.open(page, 390)
    row = browser.one("tr[data-name='gpt/fp32']")
    for cell in row.find_elements("css selector", "td")[:3]:
        assert cell.rect["x"] + cell.rect["width"] <= 390
    assert "verified" in row.find_elements("css selector", "td")[2].text


def test_the_page_names_itself_and_its_headings_show_that_they_sort(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.one("h1").text == "Model catalog"
    assert browser.driver.title.startswith("Model catalog: ")
    arrows = browser.run(
        "return [...document.querySelectorAll('#artefacts th button')].map(b => getComputedStyle(b, '::after').content)"
    )
    assert all("\u2195" in arrow for arrow in arrows)
    opened(browser, "gpt/fp32")
    assert browser.all("tr.detail h2") == []
    assert browser.all("tr.detail .bad") == []


def test_an_address_names_an_artefact(browser: Browser, page: Path) -> None:
    browser.driver.get("about:blank")
    browser.driver.get(f"{page.as_uri()}#t5")
    WebDriverWait(browser.driver, 60).until(lambda driver: browser.all("tr.detail"))
    assert "ORT" not in browser.one("tr.detail").text
    assert "decoder_model.onnx" in browser.one("tr.detail").text


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_overflows(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width)
    opened(browser, "t5")
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    outside = browser.run(
        "return [...document.querySelectorAll('main *')].filter(e => !e.parentElement.closest('.scroll, pre, svg')"
        " && e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML.slice(0, 80))"
    )
    assert outside == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_readable(browser: Browser, page: Path, scheme: str) -> None:
    browser.open(page, scheme=scheme)
    opened(browser, "gpt/fp32")
    count, hard = browser.run(CONTRAST)
    assert count > 100
    assert hard == []


@pytest.mark.slow
def test_a_page_of_every_preset_loads_in_time(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "catalog.html"
    path.write_text(catalog_of_presets(tmp_path).page(tmp_path), encoding="utf-8")
    assert path.stat().st_size < 10_000 * len(preset_names())
    browser.open(path)
    assert 0 < browser.processor_seconds() < 3
    assert len(shown(browser)) == len(preset_names())
    assert re.fullmatch(r"(\d+) of \1 artefacts", browser.one("#count").text)
    assert browser.errors() == []
