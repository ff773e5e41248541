"""The page of ``zoo report --html`` in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from specs.files.device import device_names
from specs.language.load import load
from tests.browser.conftest import Browser
from zoo.reports.costs import costs, within
from zoo.reports.lengths import Lengths
from zoo.reports.parameters import parameter_report
from zoo.reports.report import report

pytestmark = pytest.mark.browser

CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
PRESETS = [
    "bert-base", "gpt2", "gpt3-175b", "t5-small", "llama-3.1-8b", "gemma3-1b", "gpt-oss-20b", "deepseek-v3",
    "bloom-560m", "whisper-tiny", "vit-base-16", "albert-base-v2",
]  # fmt: skip
PageOf = Callable[..., Path]


@pytest.mark.parametrize("preset", PRESETS)
def test_everything_is_drawn_at_once_and_from_the_file_alone(
    browser: Browser, page_of: PageOf, preset: str
) -> None:
    browser.open(page_of(preset))
    timing = browser.run("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert 0 < timing < 3000
    assert browser.errors() == []
    assert all(url.startswith(("file:", "data:")) for url in browser.requests())
    sections = {each.get_attribute("id"): each for each in browser.all("main section")}
    assert list(sections) == [
        "architecture",
        "parameters",
        "costs",
        "shapes",
        "attention",
        "positions",
        "spec",
    ]
    assert all(section.size["height"] > 40 for section in sections.values())
    pictures = browser.all(
        "#architecture svg, #parameters button, #attention .pad-none, #attention .pad-any, #positions svg, canvas"
    )
    assert len(pictures) > 8
    assert all(min(picture.size.values()) > 0 for picture in pictures if picture.tag_name != "button")
    assert len(browser.all("#shapes tbody tr")) > 15
    plain = browser.run(
        "return [...document.querySelectorAll('canvas')].filter(c => new Set(c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data).size < 10).length"
    )
    assert plain == 0


@pytest.mark.parametrize("spec", [
    ("bert-base",), ("gemma3-1b",), ("whisper-tiny",), ("deepseek-v3",), ("tiny-gpt", f"name={'long' * 40}", "context_length=1"),
])  # fmt: skip
@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_overflows(browser: Browser, page_of: PageOf, spec: tuple[str, ...], width: int) -> None:
    browser.open(page_of(*spec), width)
    assert browser.errors() == []
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    outside = browser.run(
        "return [...document.querySelectorAll('main *')].filter(e => !e.parentElement.closest('.scroll, pre, svg, .treemap')"
        " && e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML.slice(0, 80))"
    )
    assert outside == []


@pytest.mark.parametrize("preset", ["gpt2", "gpt-oss-20b", "whisper-tiny"])
def test_light_and_dark_are_readable(browser: Browser, page_of: PageOf, preset: str) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    browser.open(page_of(preset), scheme="light")
    light = browser.run(ground)
    count, hard = browser.run(CONTRAST)
    assert count > 100
    assert hard == []
    browser.prefer("dark")
    dark = browser.run(ground)
    assert dark != light
    assert browser.run(CONTRAST)[1] == []
    switch = browser.one("#theme")
    assert switch.get_attribute("aria-label") == "Show the page light"
    switch.click()
    assert browser.run(ground) == light
    assert switch.get_attribute("aria-label") == "Show the page dark"
    assert browser.run(CONTRAST)[1] == []
    switch.click()
    assert browser.run(ground) == dark
    browser.prefer("dark", "print")
    assert browser.run(ground) == light


def test_heat_maps_follow_the_theme(browser: Browser, page_of: PageOf) -> None:
    first = "return [...document.querySelector('canvas').getContext('2d').getImageData(60, 3, 1, 1).data]"
    browser.open(page_of("llama-3.1-8b"))
    light = browser.run(first)
    browser.one("#theme").click()
    assert (
        browser.run(f"return new Promise(done => requestAnimationFrame(() => done((() => {{ {first} }})())))")
        != light
    )


def test_a_part_of_the_drawing_shows_its_figures(browser: Browser, page_of: PageOf) -> None:
    browser.open(page_of("gpt2"))
    panel = browser.one("#part")
    assert "The whole model" in panel.text
    assert "124,439,808" in panel.text
    part = browser.one("#architecture [data-path='decoder.blocks.0.attention']")
    part.click()
    expected = within(costs(load("gpt2")).stages["step"].modules, "decoder.blocks.0.attention") * 12
    for text in (
        "Multi-head attention",
        "decoder.blocks.0\u201311.attention",
        "decoder.block.attention",
        "28,348,416, 22.8 %",
        "37.7 MB",
        f"{expected.at(B=1, T=1, P=1023) / 1e6:.1f} MFLOP",
        "2 x (B x 12 x P+T x 64)",
    ):
        assert text in panel.text
    marked = "return [...document.querySelectorAll('tr.marked')].map(row => row.dataset.path)"
    assert {"decoder.blocks.0.attention", "decoder.blocks.0.attention.query"} <= set(browser.run(marked))
    assert all(path.startswith("decoder.blocks.0.attention") for path in browser.run(marked))
    browser.one("#part button").click()
    assert "The whole model" in panel.text
    assert browser.run(marked) == []
    assert browser.errors() == []


def test_a_row_of_a_table_chooses_its_part(browser: Browser, page_of: PageOf) -> None:
    browser.open(page_of("gemma2-2b"))
    row = browser.one("#shapes tr[data-path='decoder.blocks.0.feed_forward.up']")
    browser.run("arguments[0].scrollIntoView({block: 'center'}); arguments[0].click()", row)
    current = browser.all("#architecture [aria-current]")
    assert [each.get_attribute("data-path") for each in current] == ["decoder.blocks.0.feed_forward"]
    assert "GeGLU" in browser.one("#part").text


def test_parts_are_reached_by_keys(browser: Browser, page_of: PageOf) -> None:
    browser.open(page_of("t5-small"))
    assert len(browser.all("#architecture [tabindex='0'][data-box]")) == 1
    browser.run("document.querySelector('#architecture [data-box][tabindex=\"0\"]').focus()")
    seen = []
    for key in (Keys.ARROW_UP, Keys.ARROW_UP, Keys.ARROW_DOWN, Keys.ENTER):
        browser.driver.switch_to.active_element.send_keys(key)
        seen.append(browser.driver.switch_to.active_element.get_attribute("data-box"))
    assert len(set(seen)) == 2
    assert "The whole model" not in browser.one("#part").text
    browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert "The whole model" in browser.one("#part").text


@pytest.mark.parametrize(("width", "beside"), [(390, False), (1400, True)])
def test_the_figures_stand_beside_the_drawing_where_there_is_room(
    browser: Browser, page_of: PageOf, width: int, beside: bool
) -> None:
    browser.open(page_of("gpt2"), width)
    drawing, panel = browser.one("#architecture svg").rect, browser.one("#part").rect
    assert (panel["x"] > drawing["x"] + drawing["width"]) == beside
    assert panel["x"] + panel["width"] <= width
    if beside:
        assert panel["width"] > 500
        return
    browser.run(
        "document.querySelector('#architecture [data-box]').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    top, bottom = browser.run(
        "const box = document.getElementById('part').getBoundingClientRect(); return [box.top, box.bottom]"
    )
    assert 0 < top < bottom <= 900


def test_a_size_out_of_range_says_so_and_greys_the_figures(browser: Browser, page_of: PageOf) -> None:
    browser.open(page_of("gpt2"))
    choose_sizes(browser, {"T": 5000})
    message = browser.one("[data-symbol=T] [role=alert]")
    assert message.text == "Enter a whole number from 1 to 1,024. The figures are for T = 500."
    assert browser.run("return getComputedStyle(document.getElementById('stages')).opacity") == "0.45"
    choose_sizes(browser, {"T": 600})
    assert message.text == ""
    assert browser.run("return getComputedStyle(document.getElementById('stages')).opacity") == "1"


def choose_sizes(browser: Browser, sizes: dict[str, int]) -> None:
    """Type sizes into the fields beside the sliders."""
    for symbol, value in sizes.items():
        field = browser.one(f"[data-symbol={symbol}] input[type=number]")
        field.clear()
        field.send_keys(str(value))


def numbers(browser: Browser, table: str) -> list[list[int]]:
    """The exact figures of a table's rows."""
    return browser.run(
        f"return [...document.querySelectorAll('#{table} tbody tr')].map(r => "
        "[...r.querySelectorAll('[data-value]')].map(c => c.dataset.value))"
    )


@pytest.mark.parametrize(
    ("preset", "sizes"),
    [
        ("bert-base", {"B": 7, "T": 333}),
        ("t5-small", {"B": 3, "T": 17, "P": 400, "S": 511}),
        ("mixtral-8x7b", {"B": 1000, "T": 30011, "P": 32767}),
        ("gpt3-175b", {"B": 1024, "T": 2048, "P": 0}),
    ],
)
def test_costs_are_those_of_python_at_any_size(
    browser: Browser, page_of: PageOf, preset: str, sizes: dict[str, int]
) -> None:
    browser.open(page_of(preset))
    choose_sizes(browser, sizes)
    expected = costs(load(preset))
    shown = numbers(browser, "stages")
    for row, stage in zip(shown, expected.stages.values(), strict=True):
        every = [stage.total.at(**sizes), stage.total_elements.at(**sizes)]
        assert [int(value) for value in row] == every
    name, stage = list(expected.stages.items())[-1]
    browser.one(f"#stage input[value={name}]").click()
    rows = {each.find_element("css selector", "code").text: each for each in browser.all("#modules tbody tr")}
    head = rows["head"].find_element("css selector", "[data-value]").get_attribute("data-value")
    assert int(head or 0) == within(stage.modules, "head").at(**sizes)


@pytest.mark.parametrize(
    ("preset", "precision", "sizes"),
    [
        ("bert-base", "fp32", {"B": 64, "T": 128}),
        ("t5-small", "bf16", {"B": 3, "T": 17, "P": 400, "S": 511}),
        ("mixtral-8x7b", "fp16", {"B": 5, "T": 3, "P": 32767}),
        ("gemma3-27b-text", "fp32", {"B": 2, "T": 100, "P": 5000}),
        ("vit-base-16", "fp16", {"B": 10}),
    ],
)
def test_memory_and_bounds_are_those_of_python(
    browser: Browser, page_of: PageOf, preset: str, precision: str, sizes: dict[str, int]
) -> None:
    browser.open(page_of(preset))
    choose_sizes(browser, sizes)
    browser.one(f"#precision input[value={precision}]").click()
    spec = load(preset)
    lengths = Lengths.of(spec, *(sizes.get(symbol) for symbol in "BTPS"))  # type: ignore[arg-type]
    expected = report(spec, lengths, precision, device_names())
    at = lengths.symbols("train")
    memory = [int(row[0]) for row in numbers(browser, "memory")]
    weights = list(expected.weights.values())
    assert memory[: len(weights)] == weights
    if expected.cache is not None:
        assert memory[len(weights) :] == [
            expected.cache.bytes_per_token,
            expected.cache.needed(lengths.batch, lengths.length, lengths.source),
            expected.cache.needed(lengths.batch, lengths.past, lengths.source),
        ]
    trained, state, step = (
        [int(row[0]) for row in numbers(browser, "training")],
        expected.state,
        expected.training,
    )
    assert trained[0] == step.passes.total.at(**at)
    assert trained[1] == step.passes.checkpointed.at(**at)
    assert trained[-2:] == [state.total + part.at(**at) for part in (step.activations, step.checkpointed)]
    if expected.expert_reads:
        assert [int(row[0]) for row in numbers(browser, "reads")] == [
            each.bytes for each in expected.expert_reads
        ]
        reads = [row.text.split() for row in browser.all("#reads tbody tr")]
        assert [row[:4] for row in reads] == [
            [str(each.batch), *each.experts_text.split()] for each in expected.expert_reads
        ]
    rows = browser.all("#devices tbody tr")
    assert len(rows) == len(expected.rooflines) > 5
    for row, roofline in zip(rows, expected.rooflines, strict=True):
        shown = [
            float(each.get_attribute("data-seconds") or 0)
            for each in row.find_elements("css selector", "[data-seconds]")
        ]
        roofs = roofline.roofs or {}
        assert shown == pytest.approx([roof.seconds for roof in roofs.values()], rel=1e-9)
        assert all(f"by {roof.bound}" in row.text for roof in roofs.values())
        counts = [
            int(each.get_attribute("data-value") or 0)
            for each in row.find_elements("css selector", "[data-value]")
        ]
        assert counts == [roofline.count, roofline.largest_batch, roofline.largest_context]


def test_the_roof_is_that_of_the_device_chosen(browser: Browser, page_of: PageOf) -> None:
    browser.open(page_of("gpt2"))
    shape = "return document.querySelector('#roof .line').getAttribute('d')"
    first = browser.run(shape)
    assert [each.text for each in browser.all("#roof text")][-2:] == ["prefill", "step"]
    browser.one("#device input[value=t4]").click()
    assert browser.run(shape) != first
    assert browser.errors() == []


def test_sliders_move_the_costs(browser: Browser, page_of: PageOf) -> None:
    browser.open(page_of("gpt2"))
    prefill = costs(load("gpt2")).stages["prefill"].total
    slider = browser.one("[data-symbol=T] input[type=range]")
    field = browser.one("[data-symbol=T] input[type=number]")
    seen = []
    for key in (Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.HOME, Keys.END):
        slider.send_keys(key)
        length = int(field.get_attribute("value") or 0)
        assert int(numbers(browser, "stages")[0][0]) == prefill.at(B=1, T=length)
        seen.append(length)
    assert seen == [768, 512, 1, 1024]
    before = numbers(browser, "stages")
    field.clear()
    field.send_keys("4096")
    assert field.get_attribute("value") == "4096"
    assert browser.run("return arguments[0].checkValidity()", field) is False
    assert numbers(browser, "stages") != before  # 409 fits, 4096 is beyond the context
    assert int(numbers(browser, "stages")[0][0]) == prefill.at(B=1, T=409)


def test_areas_are_shares_of_the_parameters(browser: Browser, page_of: PageOf) -> None:
    browser.open(page_of("bert-base"))
    root = parameter_report(load("bert-base")).root
    sizes = {cell.get_attribute("data-path"): cell.size for cell in browser.all(".treemap button")}
    up, query = sizes["encoder.blocks.0.feed_forward.up"], sizes["encoder.blocks.0.attention.query"]
    assert up["width"] * up["height"] / (query["width"] * query["height"]) == pytest.approx(4, rel=0.15)
    token = sizes["embedding.token"]
    assert token["width"] * token["height"] / (up["width"] * up["height"]) == pytest.approx(
        23440896 / 28348416, rel=0.15
    )
    told = browser.one("#parameters .told")
    assert f"{root.parameters:,} parameters" in told.text


def test_the_treemap_zooms(browser: Browser, page_of: PageOf) -> None:
    browser.open(page_of("bert-base"))

    def crumbs() -> list[str]:
        return [each.text for each in browser.all(".crumbs > *")]

    assert crumbs() == ["bert-base"]
    browser.one("[data-path='encoder.blocks.0.attention.query']").click()
    assert crumbs() == ["bert-base", "encoder"]
    browser.one("[data-path='encoder.blocks.0.attention.query']").click()
    assert crumbs() == ["bert-base", "encoder", "all 12 layers"]
    browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert crumbs() == ["bert-base", "encoder"]
    browser.one(".crumbs button").click()
    assert crumbs() == ["bert-base"]
    assert len(browser.all(".treemap button[tabindex='0']")) == 1


def test_the_treemap_goes_by_keys(browser: Browser, page_of: PageOf) -> None:
    browser.open(page_of("bert-base"))
    browser.run("document.querySelector(\"[data-path='encoder.blocks.0.attention.query']\").focus()")

    def focused() -> str:
        return (browser.driver.switch_to.active_element.get_attribute("data-path") or "").rpartition(".")[2]

    assert focused() == "query"
    told = browser.one("#parameters .told").text
    assert all(
        part in told
        for part in (
            "encoder.blocks.0.attention.query",
            "weight 768 x 768",
            "12 x 590,592 = 7,087,104",
            "6.5 %",
        )
    )
    seen = {focused()}
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_LEFT, Keys.ARROW_LEFT):
        browser.driver.switch_to.active_element.send_keys(key)
        seen.add(focused())
    assert len(seen) == 5
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert len(browser.all(".crumbs > *")) == 2


def test_padding_can_be_chosen(browser: Browser, page_of: PageOf) -> None:
    browser.open(page_of("gpt2"))

    def shown() -> list[str | None]:
        return [each.get_attribute("class") for each in browser.all("#attention svg") if each.is_displayed()]

    assert shown() == ["pad-none"]
    for padding in ("left", "right", "none"):
        browser.one(f"#attention input[value={padding}]").click()
        assert shown() == [f"pad-{padding}"]


def test_pairs_turn_with_the_position(browser: Browser, page_of: PageOf) -> None:
    browser.open(page_of("gpt2", "position.kind=rope"))
    slider, hand = browser.one(".dials input"), browser.one(".dials .hand")
    slider.send_keys(Keys.HOME)
    assert hand.get_attribute("d") == "M0 0L18 0"
    slider.send_keys(Keys.ARROW_RIGHT)
    x, y = map(float, re.findall(r"-?[\d.]+", (hand.get_attribute("d") or "").partition("L")[2]))
    assert (x, y) == pytest.approx((18 * 0.540302, -18 * 0.841471), abs=1e-4)  # one radian
    assert browser.one(".dials output").text == "1"
