"""Write what pages repeat from the code into them: ``python docs/hooks/generate.py``.

A page reads well as it is committed, on GitHub as in the site: a generated part stands between two comments, the first of which
names its source. A test compares every part with its source.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from cli_page import cli_page
from guide_tables import layout_rows, option_rows, target_rows
from python_entry import python_entry
from spec_page import spec_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WHOLE: dict[str, Callable[[], str]] = {"reference/spec.md": spec_page, "reference/cli.md": cli_page}
"""Pages that are generated from their first line to their last."""

TABLES: dict[str, Callable[[], list[str]]] = {
    "targets": target_rows,
    "layouts": layout_rows,
    "options": option_rows,
}

_PART = re.compile(r"^<!-- generated: ([^\n]+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"```\w+.*\n")


def pages() -> Iterator[tuple[Path, str]]:
    """Every page that has a generated part, with the text that it should have."""
    for name, page in WHOLE.items():
        yield DOCS / name, page()
    for path in sorted(DOCS.rglob("*.md")):
        if str(path.relative_to(DOCS)) not in WHOLE and _PART.search(text := path.read_text("utf-8")):
            yield path, _PART.sub(_filled, text)


def _filled(part: re.Match[str]) -> str:
    source, body = part[1], part[2].strip("\n")
    if source in TABLES:
        body = "\n".join(TABLES[source]())
    elif source.startswith("python "):
        body = python_entry(source.removeprefix("python ")).strip("\n")
    else:
        fence = _FENCE.match(body)
        assert fence is not None, f"{source}: a generated part of code must begin with a fence"
        body = f"{fence[0]}{code(source)}```"
    return f"<!-- generated: {source} -->\n\n{body}\n\n<!-- end -->"


def code(source: str) -> str:
    """The text of a file, or the section of it that a colon and a name select, without the marks of sections."""
    name, _, section = source.partition(":")
    text = (ROOT / name).read_text("utf-8")
    if section:
        mark = rf"^ *# --8<-- \[{{}}:{re.escape(section)}\]\n"
        _, text, _ = re.split(f"{mark.format('start')}|{mark.format('end')}", text, flags=re.MULTILINE)
    return textwrap.dedent(re.sub(r"^ *# --8<-- .*\n", "", text, flags=re.MULTILINE)).strip("\n") + "\n"


if __name__ == "__main__":
    for path, text in [*pages()]:
        path.write_text(text, "utf-8")
