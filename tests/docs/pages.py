"""The fenced blocks of the documentation."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"^<!-- generated: .*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
_EXITS = re.compile(r"# exits (\d)$")
_SHELL = {">", "|", "&&", "<"}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the name of the file that it shows ("" for none), and its text."""

    page: str
    language: str
    title: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command line that a page shows: its arguments after ``zoo``, the exit status it is to have, and what it prints."""

    page: str
    arguments: tuple[str, ...]
    status: int
    output: str


def blocks(*pages: Path) -> Iterator[Block]:
    """The fenced blocks of some pages, of all in ``docs`` unless named; not those that are copied from files, which have tests."""
    for page in pages or sorted((ROOT / "docs").rglob("*.md")):
        for language, title, text in _FENCE.findall(GENERATED.sub("", page.read_text("utf-8"))):
            yield Block(str(page.relative_to(ROOT)), language, title, text)


def commands(block: Block) -> Iterator[Command]:
    """The commands of ``zoo`` in a block, whose lines start with ``$``; one that ends in a backslash goes on."""
    for part in re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        status = _EXITS.search(line)
        words = shlex.split(line, comments=True)
        end = next((i for i, word in enumerate(words) if word in _SHELL), len(words))
        if words[0] == "zoo" and "..." not in words:
            yield Command(block.page, tuple(words[1:end]), int(status[1]) if status else 0, output)
