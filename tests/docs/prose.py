"""The prose of every Markdown file in the repository: its blocks and sentences, without code and generated parts."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import GENERATED, ROOT

FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_WHOLE = {"docs/reference/cli.md", "docs/reference/spec.md"}
"""Pages of which every line is generated from the code, whose texts have tests of their own."""

_ROW = re.compile(r"^\|.*$", re.MULTILINE)
_START = re.compile(r"\n\s*\n|^\s*(?:[-*]|\d+\.) ", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?])(?<!al\.)(?<!e\.g\.)(?<!i\.e\.)['\")*]*\s+")
_WORD = re.compile(r"[^\W_][\w.,'%/+-]*")


def markdown() -> list[Path]:
    """Every Markdown file that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / line for line in listed.splitlines() if (ROOT / line).is_file()]


def written() -> Iterator[tuple[str, str]]:
    """The name of every page that people write, and its text without code and generated parts."""
    for page in markdown():
        if (name := str(page.relative_to(ROOT))) not in _WHOLE:
            yield name, FENCED.sub("\n", GENERATED.sub("", page.read_text("utf-8")))


def headings(text: str) -> list[str]:
    """The headings of a page."""
    return re.findall(r"^#+ (.+)$", text, re.MULTILINE)


def sentences(text: str) -> Iterator[str]:
    """The sentences of paragraphs, list items and table cells, a piece of code or a link as one word each.

    A cell counts where it ends with a full stop: others list values.
    """
    text = _ROW.sub(_cells, re.sub(r"^#+ .*$", "", text, flags=re.MULTILINE))
    for block in _START.split(text):
        plain = _LINK.sub(r"\1", re.sub(r"`[^`]*`", "CODE", " ".join(block.split())))
        yield from (sentence for sentence in _END.split(plain) if sentence)


def word_count(sentence: str) -> int:
    """The words of a sentence."""
    return len(_WORD.findall(sentence))


def _cells(row: re.Match[str]) -> str:
    cells = (cell.strip() for cell in row[0].strip("|").split("|"))
    return "\n\n".join(("", *(cell for cell in cells if cell.endswith(".")), ""))
