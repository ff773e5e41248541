"""Debian's Chromium without a window, and the pages that it opens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webelement import WebElement

from specs.files.device import device_names
from specs.language.load import load
from zoo.pages.report_page import report_page
from zoo.reports.report import report

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass(frozen=True)
class Browser:
    """A browser, and what is asked of it in tests."""

    driver: webdriver.Chrome

    def open(self, path: Path, width: int = 1400, scheme: str = "light") -> None:
        """Load a page into a window of some width, for a reader who prefers a colour scheme."""
        self.prefer(scheme)
        self.resize(width)
        self.errors()
        self.requests()
        self.driver.get(path.as_uri())

    def prefer(self, scheme: str, media: str = "screen") -> None:
        """Tell the page which colour scheme the reader prefers, and where it is shown."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def resize(self, width: int) -> None:
        """Make the window so wide."""
        sizes = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[WebElement]:
        """The elements that a CSS selector finds."""
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> WebElement:
        """The first of them."""
        return self.driver.find_element("css selector", selector)

    def processor_seconds(self) -> float:
        """The processor time that the page has taken to load, whatever else runs."""
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def errors(self) -> list[str]:
        """What the console has complained of since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since then."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]


def started(profile: Path) -> Browser:
    """A browser with a profile, which the caller closes."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    driver.set_page_load_timeout(60)
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    return Browser(driver)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = started(tmp_path_factory.mktemp("profile"))
    try:
        yield browser
    finally:
        browser.driver.quit()


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Writes the page of a spec, once."""
    directory = tmp_path_factory.mktemp("pages")

    def write(reference: str, *assignments: str) -> Path:
        path = directory / f"{'+'.join((reference, *assignments))}.html"
        if not path.exists():
            path.write_text(
                report_page(report(load(reference, assignments), devices=device_names())), encoding="utf-8"
            )
        return path

    return write
