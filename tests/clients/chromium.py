"""transformers.js in Chromium: the answers of ``answer_transformers_js.mjs`` in a page, with WebGPU or WebAssembly."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.clients.client import ENVIRONMENTS, HERE, KEPT

MODULES = ENVIRONMENTS / "transformers-js" / "node_modules"
EXAMPLE = HERE.parents[1] / "examples" / "web"

FLAGS = (
    "--headless=new", "--no-sandbox", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan", "--ignore-gpu-blocklist",
)  # fmt: skip
"""WebGPU on SwiftShader, without a GPU."""

SECONDS = 600

PAGE = """<!doctype html>
<link rel="icon" href="data:,">
<script type="importmap">{"imports": {
  "@huggingface/transformers": "./node_modules/@huggingface/transformers/dist/transformers.web.js",
  "onnxruntime-web/webgpu": "./node_modules/onnxruntime-web/dist/ort.webgpu.min.mjs",
  "onnxruntime-common": "./node_modules/onnxruntime-common/dist/esm/index.js"
}}</script>
<script type="module">
import * as transformers from "@huggingface/transformers";
import { answersTo } from "./answer_transformers_js.mjs";
import "./run.js";
window.answersTo = (request) => answersTo(transformers, request);
</script>
"""

ASK = """
const [request, done] = arguments;
const answered = async () => {
  while (!window.answersTo) await new Promise((resume) => setTimeout(resume, 50));
  return window.answersTo(request);
};
answered().then((found) => done({ found }), (error) => done({ error: `${error.stack ?? error}` }));
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """Serve a directory on this machine alone, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(directory))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """Yield a Chromium of its own."""
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        driver.set_script_timeout(SECONDS)
        try:
            yield driver
        finally:
            driver.quit()


@cache
def kept_chromium() -> webdriver.Chrome:
    """A Chromium for all tests: a new one compiles the client and its shaders again."""
    return KEPT.enter_context(chromium())


def site(place: Path, model: Path) -> Path:
    """A directory with the example's files, the client's modules, and an export as ``model``."""
    assert MODULES.exists(), f"{MODULES} is missing: run `make test-clients`"
    place.mkdir(parents=True)
    for file in EXAMPLE.iterdir():
        if file.is_file():
            (place / file.name).symlink_to(file)
    (place / "node_modules").symlink_to(MODULES)
    (place / "answer_transformers_js.mjs").symlink_to(HERE / "answer_transformers_js.mjs")
    (place / "client.html").write_text(PAGE)
    (place / "model").symlink_to(model)
    return place


def hosts(driver: webdriver.Chrome) -> set[str | None]:
    """The hosts that were asked for anything over the network."""
    asked = [entry["message"] for entry in driver.get_log("performance")]
    sent = [json.loads(message)["message"] for message in asked]
    urls = [
        each["params"]["request"]["url"] for each in sent if each["method"] == "Network.requestWillBeSent"
    ]
    return {urlsplit(url).hostname for url in urls if url.startswith("http")}


@dataclass(frozen=True)
class Chromium:
    """transformers.js in a page, on one device: webgpu or wasm."""

    device: str

    def __call__(self, directory: Path, **request: Any) -> Any:
        """What the client makes of a directory, or an error with its stack."""
        asked = {"directory": "model", "device": self.device, **request}
        with TemporaryDirectory(prefix="site-") as name:
            place = site(Path(name) / "site", directory.absolute())
            driver = kept_chromium()
            with served(place) as address:
                driver.get(f"{address}/client.html")
                answer = driver.execute_async_script(ASK, asked)
                assert "error" not in answer, f"{answer['error']}\n{driver.get_log('browser')}"
                assert hosts(driver) == {"127.0.0.1"}
                driver.get("about:blank")  # ends what runs on the page
                return answer["found"]


WEBGPU, WASM = Chromium("webgpu"), Chromium("wasm")
