"""The example page: an export in a directory beside it runs in Chromium, with WebGPU and with WebAssembly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.clients.checkpoints import checkpoint, maker
from tests.clients.chromium import SECONDS, chromium, hosts, served, site
from zoo import import_checkpoint

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def pressed(driver: webdriver.Chrome, device: str, text: str, tokens: int) -> dict[str, Any]:
    """What the page shows for a text on a device."""
    Select(driver.find_element(By.NAME, "device")).select_by_value(device)
    for name, value in (("text", text), ("tokens", str(tokens))):
        field = driver.find_element(By.NAME, name)
        field.clear()
        field.send_keys(value)
    driver.find_element(By.TAG_NAME, "button").click()
    status = driver.find_element(By.CSS_SELECTOR, "[role=status]")
    WebDriverWait(driver, SECONDS).until(lambda _: status.text.startswith(("Done", "Failed")))
    assert status.text.startswith("Done"), status.text
    shown = driver.find_element(By.ID, "result").get_attribute("data-found")
    assert shown is not None
    found: dict[str, Any] = json.loads(shown)
    return found


def test_a_decoder_continues_a_text(tmp_path: Path) -> None:
    origin = checkpoint(maker("llama"), tmp_path / "origin", 7)
    options = ExportOptions(weights=str(origin.directory), layout="transformers-js", target="webgpu")
    export(import_checkpoint(origin.directory), tmp_path / "model", options)
    text, count = "The quick brown fox", 12
    (expected,) = origin.greedy([text], count)
    with served(site(tmp_path / "site", tmp_path / "model")) as address, chromium() as driver:
        driver.get(f"{address}/index.html")
        for device in ("webgpu", "wasm"):
            assert pressed(driver, device, text, count)["tokens"][-count:] == expected
        assert hosts(driver) == {"127.0.0.1"}


def test_a_directory_without_an_export_is_told(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with served(site(tmp_path / "site", tmp_path / "model")) as address, chromium() as driver:
        driver.get(f"{address}/index.html")
        Select(driver.find_element(By.NAME, "device")).select_by_value("wasm")
        driver.find_element(By.TAG_NAME, "button").click()
        status = driver.find_element(By.CSS_SELECTOR, "[role=status]")
        WebDriverWait(driver, 60).until(lambda _: status.text.startswith(("Done", "Failed")))
        assert (
            status.text
            == "Failed: model/config.json: 404 File not found. Export with --layout transformers-js."
        )
