"""A studio that runs, and what a user does on its page."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from cli.studio.link import text_of_link
from tests.browser.conftest import Browser
from tests.cli.process import ZOO
from tests.cli.program import as_json


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
        """Wait until the last edit is answered whole, and the address holds it."""
        script = """
        const { asked, answered, remembered } = document.body.dataset;
        return Boolean(asked) && answered === asked && remembered === asked;
        """
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


@contextmanager
def studio_of(browser: Browser, folder: Path, *arguments: str) -> Iterator[StudioPage]:
    """A studio in a folder, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HF_HUB_OFFLINE": "1"
    }  # fmt: skip
    process = subprocess.Popen(
        [*ZOO, "studio", *(arguments or ["gpt2"]), "--no-browser", "--port", str(port)],
        cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    address = process.stdout.readline().partition(": ")[2].strip()
    try:
        yield StudioPage(browser, address, folder)
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def studio(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudioPage]:
    with studio_of(browser, tmp_path_factory.mktemp("studio")) as page:
        yield page


def counted(*arguments: str) -> int:
    """What ``zoo params`` counts."""
    total: int = as_json("params", *arguments)["total_parameters"]
    return total
