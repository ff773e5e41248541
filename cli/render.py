"""How results are printed: the one place where text meets a terminal.

Names of tensors, fields, files and tokens come from files that anyone may have written.  What they hold is shown, never
obeyed: every function here escapes control characters.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import typer

from cli.table_layout import Cell as Cell
from cli.table_layout import Column as Column
from cli.table_layout import Table, wrap
from specs.printable import printable

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

_PIPED_COLUMNS = 160
_FEWEST_COLUMNS = 40
_LONGEST_LINE = 10_000
_HANGING = "  "
NO_BREAK = "\u00a0"
"""A space, printed as one, at which no line is broken."""
_UNSAFE_IN_TERMINALS = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

CellText = str | Cell | Sequence[str]
"""A cell: text, text with a style, or several lines."""


def columns_of(stream: IO[str]) -> int | None:
    """The width of a terminal, or what COLUMNS says; None for a file or a pipe, where nothing is cut or wrapped."""
    if not stream.isatty() and not os.environ.get("COLUMNS"):
        return None
    return max(shutil.get_terminal_size().columns, _FEWEST_COLUMNS)


def say(text: str = "", style: str = "", *, lead: str = "", err: bool = False) -> None:
    """Print text, with lines wrapped at words in a terminal; ``lead`` is its beginning in bold.

    A style is a colour and ``bold`` or ``dim``: ``bold red``.
    """
    stream = sys.stderr if err else sys.stdout
    width = columns_of(stream) if stream.isatty() or not err else None
    for number, line in enumerate(printable(lead + text, keep="\n\t").split("\n")):
        if len(line) > _LONGEST_LINE:
            line = f"{line[:_LONGEST_LINE]}... and {len(line) - _LONGEST_LINE:,} more characters"
        hanging = line[: len(line) - len(line.lstrip())] + _HANGING
        for place, part in enumerate([line] if width is None else wrap(line, width, hanging)):
            part = part.replace(NO_BREAK, " ")
            first = len(printable(lead, keep="\n\t")) if number == place == 0 else 0
            _put(_styled(part[:first], "bold") + _styled(part[first:], style), stream)


def say_piece(text: str) -> None:
    """Print a piece of a text that goes on, as it is."""
    _put(printable(text, keep="\n\t"), sys.stdout, nl=False)


def emit(text: str) -> None:
    """Print what a program may read, such as YAML: to the letter, but for a terminal, which must not obey it."""
    _put(printable(text, keep="\n\t") if sys.stdout.isatty() else text, sys.stdout, nl=False)


def print_json(data: Any) -> None:
    """Data as indented JSON, with escapes for what a terminal would obey, or cannot show."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    text = json.dumps(data, indent=2, ensure_ascii=encoding != "utf8")
    _put(_UNSAFE_IN_TERMINALS.sub(lambda found: f"\\u{ord(found[0]):04x}", text), sys.stdout)


def print_written(paths: Iterable[Path] | None) -> None:
    """Print the files that a command has written beside its output, as ``-o`` names them."""
    for path in paths or ():
        say(f"\nWrote {path}")


def styled(text: str, style: str) -> Cell:
    """A cell in a style, such as ``bold red``."""
    return Cell((text,), style)


def print_table(columns: Sequence[Column | str], rows: Iterable[Sequence[CellText]]) -> None:
    """Print a table that keeps its names and figures at every width; see :class:`cli.table_layout.Column`."""
    made = [Column(each) if isinstance(each, str) else each for each in columns]
    heads = [replace(each, head=printable(each.head)) for each in made]
    cells = [[_cell(each) for each in row] for row in rows]
    for place, part in enumerate(Table(heads, cells, columns_of(sys.stdout)).parts()):
        if place:
            say()
        text = "\n".join("".join(_styled(piece, style) for piece, style in line) for line in part)
        _put(text.replace(NO_BREAK, " "), sys.stdout)


def _cell(cell: CellText) -> Cell:
    if isinstance(cell, Cell):
        return Cell(tuple(map(printable, cell.lines)), cell.style)
    return Cell((printable(cell),) if isinstance(cell, str) else tuple(map(printable, cell)))


def _styled(text: str, style: str) -> str:
    words = style.split()
    color = next((word for word in words if word not in ("bold", "dim")), None)
    return (
        typer.style(text, fg=color, bold="bold" in words or None, dim="dim" in words or None)
        if style and text
        else text
    )


def _put(text: str, stream: IO[str], nl: bool = True) -> None:
    typer.echo(text, file=stream, nl=nl, color=color_wanted())


def color_wanted() -> bool | None:
    """False where the environment has no colours; else None, as a terminal decides."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def console() -> Console:
    """Standard output for pictures in characters, as wide as the terminal, or 160 columns where it is none."""
    from rich.console import Console

    made = Console(markup=False, emoji=False, highlight=False)
    made.width = columns_of(sys.stdout) or _PIPED_COLUMNS
    return made
