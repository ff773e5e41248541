"""The studio's page in Chromium, edited as by hand, with the times at which the parts of each answer are shown."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.process import ZOO

FLAGS = (
    "--headless=new", "--window-size=1400,900", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

EDIT = """
const [text, done] = arguments;
const tile = document.querySelector(".cm-content").cmTile;
const view = (tile.root || tile).view;
const old = view.state.doc.toString();
let start = 0, end = 0;
while (start < old.length && old[start] === text[start]) start += 1;
while (end < Math.min(old.length, text.length) - start && old.at(-1 - end) === text.at(-1 - end)) end += 1;
new MutationObserver((changes, observer) => {
  observer.disconnect();
  done(Object.fromEntries(performance.getEntriesByType("mark").map((mark) => [mark.name, mark.startTime - began])));
}).observe(document.body, { attributeFilter: ["data-answered"] });
const began = performance.now();
view.dispatch({ changes: { from: start, to: old.length - end, insert: text.slice(start, text.length - end) } });
"""
"""Changes the editor's text where it differs, and returns the milliseconds until each part of the answer is shown.

Nothing polls meanwhile: a small machine has no processor to spare for it."""


@dataclass(frozen=True)
class StudioPage:
    """A page that shows a spec, and the process of its server."""

    driver: Any
    server: int

    def open(self, address: str) -> None:
        """Load the page and wait for its first answer."""
        self.driver.get("about:blank")
        self.driver.get(address)
        self.driver.execute_async_script(
            "const done = arguments[0]; const look = () => document.body.dataset.answered ? done() : setTimeout(look, 20); look();"
        )

    def rest(self) -> None:
        """Wait until the server has begun all that it begins by itself, such as its second process."""
        still, before = 0, -1.0
        while still < 8:
            time.sleep(0.25)
            now = processor_seconds(self.server)
            still, before = (still + 1 if now - before < 0.02 else 0), now

    def edit(self, text: str) -> tuple[dict[str, float], float]:
        """Make the editor's text another one.  Returns the seconds until each part is shown, and the server's processor time."""
        before = processor_seconds(self.server)
        shown: dict[str, float] = self.driver.execute_async_script(EDIT, text)
        return {part: time / 1e3 for part, time in shown.items()}, processor_seconds(self.server) - before


def processor_seconds(process: int) -> float:
    """The processor time of all threads of a process and of the processes that it started, on Linux to the nanosecond."""
    tasks = list(Path(f"/proc/{process}/task").iterdir())
    own = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    children = {int(child) for task in tasks for child in (task / "children").read_text().split()}
    return own + sum(map(processor_seconds, children))


def _program(name: str) -> str:
    """The path of an installed program, which Selenium must not look for elsewhere."""
    path = shutil.which(name)
    if path is None:
        raise RuntimeError(f"{name} is not installed: apt-get install chromium chromium-driver")
    return path


@contextmanager
def studio_page(address_of: str = "tiny-gpt") -> Iterator[tuple[StudioPage, str]]:
    """A studio that runs in a folder of its own, and a browser for it.  Needs Selenium, chromium and chromium-driver."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory() as folder:
        options = webdriver.ChromeOptions()
        options.binary_location = _program("chromium")
        for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        server = subprocess.Popen(
            [ZOO, "studio", address_of, "--no-browser"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
        )  # fmt: skip
        assert server.stdout is not None
        address = server.stdout.readline().partition(": ")[2].strip()
        driver = webdriver.Chrome(options=options, service=Service(_program("chromedriver")))
        driver.set_script_timeout(300)
        try:
            yield StudioPage(driver, server.pid), address
        finally:
            driver.quit()
            server.terminate()
            server.wait(20)
