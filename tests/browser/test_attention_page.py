"""The page of ``zoo attend -o page.html`` in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from selenium.webdriver import ActionChains
from selenium.webdriver.support.wait import WebDriverWait

from tests.zoo.tiny import bert, t5, vit
from zoo.attention_maps.attend import Attended, attend
from zoo.attention_maps.choice import choose
from zoo.attention_maps.patches import patch_images
from zoo.attention_maps.reading import AttentionInput
from zoo.builder import assemble
from zoo.checks.probe import ProbeWeights
from zoo.pages.attention_page import attention_page
from zoo.weights.materialize import materialize

if TYPE_CHECKING:
    from tests.browser.conftest import Browser

pytestmark = pytest.mark.browser

CONTRAST = Path(__file__).with_name("contrast.js")
SOURCE = ["[CLS]", "<b>&", "東京", "</script>", "cat", "[SEP]"]
TARGET = ["<s>", "a", "b"]
COLORS = (
    "const c = document.querySelectorAll('figure canvas')[arguments[0]];"
    "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
    "return new Set(new Uint32Array(d.buffer)).size"
)
BYTES = "return [...document.querySelectorAll('canvas')].map(c => c.toDataURL())"


@pytest.fixture(scope="module")
def attended() -> Attended:
    spec = t5()
    model = assemble(spec, torch.float64)
    materialize(model, ProbeWeights(model, spec))
    return Attended.of(
        list(attend(model, AttentionInput([1, 2, 3, 4, 5, 6], target=[0, 7, 8]), choose(spec)))
    )


@pytest.fixture(scope="module")
def path(attended: Attended, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("attention") / "page.html"
    labels = {"encoder": SOURCE, "decoder": TARGET}
    path.write_text(attention_page(attended, "tiny-t5", "random, seed 0", labels), encoding="utf-8")  # type: ignore[arg-type]
    return path


def test_every_head_is_drawn(browser: Browser, path: Path) -> None:
    browser.open(path)
    assert browser.errors() == []
    assert all(url.startswith(("file:", "data:")) for url in browser.requests())
    assert [each.text for each in browser.all("h2")] == ["encoder", "decoder", "decoder to encoder"]
    assert len(browser.all("button.head")) == 3 * 2 * (1 + 2)  # the mean, and two heads
    assert len(browser.all("button.head[aria-pressed=true]")) == 3
    assert all(browser.run(COLORS, at) > 20 for at in range(3))
    assert "</script>" in browser.one("main").text


def test_a_head_is_chosen(browser: Browser, path: Path, attended: Attended) -> None:
    browser.open(path)
    before = browser.run(BYTES)
    button = browser.all("section:nth-of-type(3) button.head")[5]  # layer 1, head 1 of cross-attention
    button.click()
    layer = attended.maps["cross"][1]
    caption = browser.all("figcaption")[2]
    assert caption.text == f"layer 1, head 1 {layer.entropy[1]:.2f} of {layer.uniform_entropy:.2f} bits"
    assert button.text == f"{layer.entropy[1]:.2f}"
    assert button.get_attribute("aria-pressed") == "true"
    assert len(browser.all("button.head[aria-pressed=true]")) == 3
    changed = [at for at, (old, new) in enumerate(zip(before, browser.run(BYTES), strict=True)) if old != new]
    assert len(changed) == 1
    canvas = browser.all("figure canvas")[2]
    browser.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    size = canvas.size
    cells = browser.run("return ATTENTION.stacks[2].columns.length"), 26
    left = size["width"] - 1 - cells[0] * cells[1]
    x = left + 2.5 * cells[1] - size["width"] / 2
    ActionChains(browser.driver).move_to_element_with_offset(
        canvas, int(x), int(13 - size["height"] / 2)
    ).perform()
    share = round(100 * round(254 * layer.weights[1, 0, 2].item()) / 254)
    assert caption.text == f"layer 1, head 1\n“<s>” (0) attends {share} % to “東京” (2)"


def test_light_and_dark(browser: Browser, path: Path) -> None:
    contrast = CONTRAST.read_text(encoding="utf-8")
    browser.open(path, scheme="light")
    light = browser.run(BYTES)
    _, hard = browser.run(contrast)
    assert hard == []
    browser.prefer("dark")
    WebDriverWait(browser.driver, 60).until(lambda _: browser.run(BYTES) != light)  # drawn in the next frame
    dark = browser.run(BYTES)
    assert all(old != new for old, new in zip(light, dark, strict=True))
    _, hard = browser.run(contrast)
    assert hard == []
    browser.one("#theme").click()
    WebDriverWait(browser.driver, 60).until(lambda _: browser.run(BYTES) == light)


def test_nothing_overflows(browser: Browser, path: Path) -> None:
    browser.open(path, 400)
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.errors() == []


def test_a_single_head_has_no_mean(browser: Browser, tmp_path: Path) -> None:
    spec = bert()
    model = assemble(spec, torch.float64)
    materialize(model, ProbeWeights(model, spec))
    one = Attended.of(list(attend(model, AttentionInput([1, 2, 3]), choose(spec, layers=[1], heads=[0]))))
    page = tmp_path / "one.html"
    page.write_text(
        attention_page(one, "tiny-bert", "random", {"encoder": ["1", "2", "3"]}), encoding="utf-8"
    )
    browser.open(page)
    assert [each.text for each in browser.all("figcaption b")] == ["layer 1, head 0"]
    assert len(browser.all("button.head")) == 1


def test_a_query_is_shown_over_the_image(browser: Browser, tmp_path: Path) -> None:
    """The first query at first, then the one pointed at; a patch is the more opaque, the larger its weight."""
    spec = vit()
    model = assemble(spec, torch.float64)
    materialize(model, ProbeWeights(model, spec))
    values = np.random.default_rng(1).normal(0, 1, (1, 3, 7, 7)).astype(np.float32)
    reading = AttentionInput(values=values)
    attended = Attended.of(list(attend(model, reading, choose(spec, layers=[1], heads=[0]))))
    page = tmp_path / "image.html"
    images = patch_images(spec, reading)
    page.write_text(attention_page(attended, "tiny-vit", "random", attended.names, images), encoding="utf-8")
    browser.open(page)
    assert browser.errors() == []
    (weights,) = attended.maps["encoder"][0].weights  # T S

    def caption(query: int, label: str) -> str:
        byte = round(254 * (weights[query, 1:].max() / weights.max()).item())
        share = 100 * byte * float(weights.max()) / 254
        return f"“{label}” over the image: up to {share:.1f} %"

    large, over = browser.all("figure canvas")
    told, shown = browser.all("figcaption")
    assert shown.text == caption(0, "[CLS]")
    assert over.size == {"width": 320, "height": 320}
    before = browser.run(BYTES)
    browser.run("arguments[0].scrollIntoView({block: 'center'})", large)
    half = large.size["height"] / 2
    ActionChains(browser.driver).move_to_element_with_offset(
        large, int(large.size["width"] / 2 - 3), int(2.5 * 26 - half)
    ).perform()
    assert shown.text == caption(2, "r0c1")
    share = 100 * round(254 * (weights[2, 4] / weights.max()).item()) * float(weights.max()) / 254
    assert told.text == f"layer 1, head 0\n“r0c1” (2) attends {share:.1f} % to “r1c1” (4)"
    after = browser.run(BYTES)
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True]
    browser.prefer("dark")
    WebDriverWait(browser.driver, 60).until(lambda _: browser.run(BYTES)[1] != after[1])
