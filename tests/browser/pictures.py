"""Pictures of the studio and of the gallery, for the documentation: ``python -m tests.browser.pictures`` writes them to ``gallery/``.

Each page is taken at 1400 and 390 pixels, light and dark; ``--only studio`` or ``--only gallery`` takes one of the pages.
"""

from __future__ import annotations

import argparse
import base64
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver

from cli.studio.link import fragment_of
from specs.language.editing import with_value
from specs.language.load import read
from specs.language.variant import unclaimed
from specs.language.writing import dump
from tests.browser.conftest import Browser, started
from tests.browser.studio_page import studio_of
from tests.cli.process import ZOO

GALLERY = Path(__file__).parents[2] / "gallery"

SCHEMES = ("light", "dark")
WIDTHS = (1400, 390)

_EDITS = {
    ("position", "kind"): "rope",
    ("decoder", "block", "norm", "kind"): "rms_norm",
    ("decoder", "block", "attention", "kind"): "grouped_query",
    ("decoder", "block", "attention", "kv_heads"): 4,
}
"""The changes to GPT-2 that the studio shows."""


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser with a profile of its own, which is closed in the end."""
    with tempfile.TemporaryDirectory() as profile:
        browser = started(Path(profile))
        try:
            yield browser
        finally:
            browser.driver.quit()


def take(driver: webdriver.Chrome, path: Path) -> None:
    """Write what is in sight."""
    data = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    path.write_bytes(base64.b64decode(data))
    print(f"{path}: {path.stat().st_size:,} bytes")


def edited() -> str:
    """The text of GPT-2 with the changes."""
    text = dump(unclaimed(read("gpt2")).data)
    for path, value in _EDITS.items():
        text = with_value(text, path, value)
    return text


def studio_pictures(browser: Browser, out: Path) -> None:
    """The studio at both widths, and its figures of several devices."""
    with tempfile.TemporaryDirectory() as folder, studio_of(browser, Path(folder)) as page:
        fragment = f"#base=gpt2&opened=gpt2&{fragment_of(edited())}"
        for scheme in SCHEMES:
            for width in WIDTHS:
                page.open(fragment, width=width, scheme=scheme)
                page.until(lambda: browser.all("#card-fits table"))
                take(browser.driver, out / f"studio-{width}-{scheme}.png")
        page.open(fragment)
        to_devices = "document.getElementById('card-fits').scrollIntoView()"
        browser.run(to_devices)
        page.until(lambda: browser.all("#card-mesh .bar"))
        browser.run(to_devices)  # cards above have grown
        take(browser.driver, out / "studio-devices.png")


def gallery_pictures(browser: Browser, out: Path) -> None:
    """The gallery at both widths."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "gallery.html"
        subprocess.run([*ZOO, "gallery", "-o", str(page)], check=True)
        for scheme in SCHEMES:
            for width in WIDTHS:
                browser.open(page, width, scheme)
                take(browser.driver, out / f"gallery-{width}-{scheme}.png")


def main() -> None:
    """Take the pictures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("studio", "gallery"))
    parser.add_argument("--out", type=Path, default=GALLERY)
    asked = parser.parse_args()
    with browsing() as browser:
        if asked.only != "gallery":
            studio_pictures(browser, asked.out)
        if asked.only != "studio":
            gallery_pictures(browser, asked.out)


if __name__ == "__main__":
    main()
