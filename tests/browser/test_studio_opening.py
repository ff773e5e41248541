"""The studio opens what is dropped, pasted or named, keeps it in its address, and gives it back as a command."""

from __future__ import annotations

import base64
import json
import re
import shlex
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.studio_page import StudioPage, counted, studio
from tests.cli.studio.test_opening import CONFIG, gguf

__all__ = ["studio"]

pytestmark = pytest.mark.browser

DROP = """
const bytes = Uint8Array.from(atob(arguments[1]), (letter) => letter.charCodeAt(0));
const data = new DataTransfer();
data.items.add(new File([bytes, new Uint8Array(arguments[2])], arguments[0]));
for (const name of ["dragover", "drop"])
  document.body.dispatchEvent(new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer: data }));
"""

PASTE = """
const data = new DataTransfer();
data.setData("text", arguments[0]);
document.body.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: data }));
"""


def drop(studio: StudioPage, name: str, content: bytes, zeros: int = 0) -> None:
    """Drop a file with some bytes, and zeros after them."""
    studio.browser.run(DROP, name, base64.b64encode(content).decode(), zeros)


def opened_as(studio: StudioPage, label: str) -> None:
    studio.until(lambda: studio.browser.one("#label").text == label)
    studio.settle()


def test_a_dropped_config_is_imported_and_a_wrong_one_refused_in_words(studio: StudioPage) -> None:
    studio.open()
    drop(studio, "config.json", json.dumps(CONFIG).encode())
    opened_as(studio, "gpt2")
    assert "layers: 2" in studio.text()
    drop(studio, "config.json", json.dumps({**CONFIG, "model_type": "gtp2"}).encode())
    studio.until(lambda: "Did you mean 'gpt2'?" in studio.browser.one("#toast").text)
    assert "layers: 2" in studio.text()
    drop(studio, "model.safetensors", b"12345678")
    studio.until(lambda: "has weights and no config" in studio.browser.one("#toast").text)
    drop(studio, "picture.png", b"\x89PNG\r\n\x1a\n\0\0")
    studio.until(lambda: "picture.png is not a text file" in studio.browser.one("#toast").text)
    assert "layers: 2" in studio.text()
    assert "dropping" not in str(studio.browser.one("body").get_attribute("class"))


def test_a_dropped_gguf_file_of_many_bytes_sends_its_head_alone(studio: StudioPage) -> None:
    studio.open()
    sent = """
    window.sent = 0;
    const real = window.fetch;
    window.fetch = (url, options) => { if (options.body instanceof Blob) window.sent += options.body.size; return real(url, options); };
    """
    studio.browser.run(sent)
    drop(studio, "small-llama.gguf", gguf(), zeros=30_000_000)
    opened_as(studio, "small-llama.gguf")
    assert studio.browser.run("return window.sent") == 24_000_000
    assert "kv_heads: 2" in studio.text()
    drop(studio, "broken.gguf", b"GGUF" + bytes(100))
    studio.until(lambda: "broken.gguf" in studio.browser.one("#toast").text)


def test_a_pasted_config_is_imported_on_the_page_in_the_dialog_and_by_the_editor(studio: StudioPage) -> None:
    config = json.dumps({**CONFIG, "n_layer": 5})
    studio.open()
    studio.browser.run(PASTE, config)
    studio.until(lambda: "layers: 5" in studio.browser.one("#editor").text)
    studio.open()
    studio.browser.one("body").send_keys(Keys.CONTROL, "o")
    studio.browser.run(
        "const box = document.querySelector('dialog textarea'); box.value = arguments[0]; box.dispatchEvent(new Event('input'))",
        config,
    )
    studio.until(lambda: "layers: 5" in studio.browser.one("#editor").text)
    studio.open()
    studio.browser.one(".cm-content").send_keys(Keys.CONTROL, "a")
    studio.browser.one(".cm-content").send_keys(Keys.DELETE)
    studio.browser.driver.execute_cdp_cmd("Input.insertText", {"text": config})
    studio.until(lambda: [each for each in studio.browser.all(".fix") if each.text == "Import it as a spec"])
    next(each for each in studio.browser.all(".fix") if each.text == "Import it as a spec").click()
    studio.until(lambda: "layers: 5" in studio.browser.one("#editor").text)


def test_a_hub_id_that_is_not_here_is_refused_in_the_dialog(studio: StudioPage) -> None:
    studio.open()
    studio.browser.one("body").send_keys(Keys.CONTROL, "o")
    studio.browser.one("dialog input").send_keys("org/not-here", Keys.ENTER)
    words = "org/not-here is not on this machine, and the hub cannot be reached: HF_HUB_OFFLINE is set"
    studio.until(lambda: words in studio.browser.one("dialog .message").text)
    assert studio.browser.one("#label").text == "gpt2"


def test_undo_and_redo_by_keys_and_by_buttons(studio: StudioPage) -> None:
    studio.open()
    assert studio.browser.one("#undo").get_attribute("disabled")
    studio.type("layers: 12", "layers: 7")
    seven = counted("gpt2", "--set", "decoder.layers=7")
    assert studio.count() == seven
    studio.click("#undo")
    studio.until(lambda: studio.count() == 124_439_808)
    studio.click("#redo")
    studio.until(lambda: studio.count() == seven)
    studio.browser.one(".cm-content").send_keys(Keys.CONTROL, "z")
    studio.until(lambda: studio.count() == 124_439_808)
    studio.browser.one(".cm-content").send_keys(Keys.CONTROL, Keys.SHIFT, "z")
    studio.until(lambda: studio.count() == seven)
    studio.browser.run("document.activeElement.blur()")
    studio.browser.one("body").send_keys(Keys.CONTROL, "z")  # outside the editor
    studio.until(lambda: studio.count() == 124_439_808)
    assert studio.browser.one("#redo").get_attribute("disabled") is None


def test_the_address_and_the_copied_command_make_the_edited_model(studio: StudioPage) -> None:
    origin = studio.address.rsplit("/", 2)[0]
    studio.browser.driver.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"origin": origin, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    studio.open()
    studio.type("layers: 12", "layers: 5")
    studio.type("kind: learned", "kind: rope")
    count = studio.count()
    studio.click("#copy-command")
    script = (
        "const done = arguments[0]; navigator.clipboard.readText().then(done, (error) => done(String(error)))"
    )
    command = studio.until(
        lambda: (text := studio.browser.driver.execute_async_script(script)).startswith("zoo build") and text
    )
    words = shlex.split(command)
    assert counted(*words[2:]) == count
    address = studio.browser.driver.current_url
    studio.open("#" + urlsplit(address).fragment)
    assert studio.count() == count
    assert studio.browser.one("#label").text == "gpt2"
    assert studio.browser.errors() == []


def test_a_file_of_the_folder_comes_before_presets_that_contain_its_name(studio: StudioPage) -> None:
    (studio.folder / "small").mkdir()
    (studio.folder / "small" / "config.json").write_text(json.dumps(CONFIG))
    studio.open()
    for typed, label in (("small", "small"), ("tiny gpt", "tiny-gpt")):
        studio.browser.one("body").send_keys(Keys.CONTROL, "o")
        studio.browser.one("dialog input").send_keys(typed, Keys.ENTER)
        opened_as(studio, label)


def test_no_word_of_the_treemap_leaves_its_area(studio: StudioPage) -> None:
    studio.open("#" + "base=llama-3-8b")
    script = """
    return [...document.querySelectorAll('#card-total svg.chart g')].flatMap((area) => {
      const edge = area.querySelector('rect').getBoundingClientRect().right;
      return [...area.querySelectorAll('text')].filter((each) => each.getBoundingClientRect().right > edge).map((each) => each.textContent);
    });
    """
    assert studio.browser.run(script) == []
    studio.open("#base=gpt2")
    studio.type("multi_head, ", "grouped_query, kv_heads: 4, ")
    studio.settle()
    words = [each.text for each in studio.browser.all("#card-total svg.chart text")]
    assert "2.36M" not in words  # the keys' area is narrower than their count
    assert [word for word in words if re.match(r"[0-9].*…", word)] == []


def test_the_search_for_a_preset_puts_its_name_first(studio: StudioPage) -> None:
    studio.open()
    studio.browser.one("body").send_keys(Keys.CONTROL, "o")
    for words, name in (("llama 3 8b", "llama-3-8b"), ("gpt2", "gpt2"), ("bert base", "bert-base")):
        search = studio.browser.one("dialog input")
        search.send_keys(Keys.CONTROL, "a")
        search.send_keys(words)
        studio.until(lambda name=name: studio.browser.one(".presets b").text == name)  # type: ignore[misc]
    search.send_keys(Keys.ESCAPE)
