"""Pages read well as they are committed: generated parts are up to date, links lead to files, and there are no raw markers."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from exporters.layouts import LAYOUTS
from exporters.target.targets import TARGETS
from tests.docs.pages import ROOT
from tests.docs.prose import FENCED, markdown

DOCS = ROOT / "docs"
PAGES = markdown()
UPDATE = "run `make digests`, which writes generated parts of pages"

_RAW = re.compile(r"-+8 *<|^:::|^``` *\{|\]\([^)]*\)\{|^#+ .*\{ *#|^!!! |^=== \"|^\?\?\? ", re.MULTILINE)
"""Markers of extensions that plain Markdown shows as they are."""

_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)]+))?\)|<img src=\"([^\"]+)\"")
_SOURCE = re.compile(r"`((?:specs|zoo|exporters|cli|tests|docs|examples|benchmarks)/[\w/.-]*\w/?)`")
_TABLE = re.compile(r"^(?:\|.*\n)+", re.MULTILINE)
_OUTSIDE = {"specs/*.yaml", "specs/search"}
"""Paths that stand for those of the reader."""


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """The module that writes generated parts, which imports its neighbours."""
    hooks = str(DOCS / "hooks")
    sys.path.insert(0, hooks)
    try:
        return importlib.import_module("generate")
    finally:
        sys.path.remove(hooks)


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as MkDocs and GitHub make them."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def _tracked() -> set[str]:
    """Every file that git knows."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {*listed.stdout.splitlines()}


def test_generated_parts_are_those_of_the_code(generate: ModuleType) -> None:
    found = dict(generate.pages())
    assert len(found) >= 12
    old = [_relative(path) for path, text in found.items() if path.read_text("utf-8") != text]
    assert old == [], UPDATE


def test_every_target_layout_and_kind_is_on_its_page() -> None:
    for page, names in (("targets", TARGETS), ("layouts", LAYOUTS)):
        text = (DOCS / "guides" / f"{page}.md").read_text("utf-8")
        rows = re.findall(r"^\| `([\w-]+)`", text.partition("<!-- end -->")[0], re.MULTILINE)
        assert rows == list(names)
        assert text.count("(default)") == 1
    spec = (DOCS / "reference" / "spec.md").read_text("utf-8")
    assert {"model", "head", "head-language_modeling", "mixer-rwkv7"} <= _anchors(spec)


@pytest.mark.parametrize("page", PAGES, ids=_relative)
def test_a_page_has_no_raw_markers(page: Path) -> None:
    text = page.read_text("utf-8")
    assert [found[0] for found in _RAW.finditer(text)] == []
    assert "```" not in FENCED.sub("", text)


@pytest.mark.parametrize("page", PAGES, ids=_relative)
def test_links_lead_to_files_of_the_repository(page: Path) -> None:
    for path, anchor, picture in _LINK.findall(FENCED.sub("", page.read_text("utf-8"))):
        if "://" in path or path.startswith("mailto:"):
            continue
        target = (page.parent / (path or picture)).resolve() if path or picture else page
        assert _relative(target) in _tracked(), path or picture
        assert not anchor or anchor in _anchors(target.read_text("utf-8")), f"{path}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=_relative)
def test_the_rows_of_a_table_have_equally_many_cells(page: Path) -> None:
    for table in _TABLE.findall(FENCED.sub("", page.read_text("utf-8"))):
        rows = [re.sub(r"\\\|", "", row).count("|") for row in table.splitlines()]
        assert {*rows} == {rows[0]}, table


@pytest.mark.parametrize("page", PAGES, ids=_relative)
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    named = {path for path in _SOURCE.findall(text) if path not in _OUTSIDE and "NAME" not in path}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    assert [path for path in named if path.endswith("/") and not (ROOT / path).is_dir()] == []


def test_what_is_no_plain_markdown_is_found() -> None:
    for raw in (
        '--8<-- "a.py"', '--8 < --"a.py"', "::: zoo.load", "``` { .python }", '![a](b.png){ width="3%" }',
        "### none { #head-none }", "!!! note", '=== "Tab"',
    ):  # fmt: skip
        assert _RAW.search(f"text\n{raw}\n"), raw
