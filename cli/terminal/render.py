"""Printing of results: the only module that writes to the terminal.

Names of tensors, fields, files and tokens come from untrusted files, so every function here escapes control characters.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

import typer

from cli.terminal.table_layout import Cell as Cell
from cli.terminal.table_layout import Column as Column
from cli.terminal.table_layout import TableLayout, wrap
from specs.base.printable import printable

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

_PIPED_COLUMNS = 160
_FEWEST_COLUMNS = 40
_LONGEST_LINE = 10_000
_HANGING = "  "
NO_BREAK = "\u00a0"
"""A non-breaking space, printed as an ordinary one."""
_UNSAFE_IN_TERMINALS = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"

CellText = str | Cell | Sequence[str]
"""A table cell: text, styled text, or several lines."""


def columns_of(stream: IO[str]) -> int | None:
    """The width of the terminal, or of COLUMNS; None for a file or a pipe, where no line is cut or wrapped."""
    if not stream.isatty() and not os.environ.get("COLUMNS"):
        return None
    return max(shutil.get_terminal_size().columns, _FEWEST_COLUMNS)


def say(text: str = "", style: str = "", *, lead: str = "", err: bool = False) -> None:
    """Print text, wrapped at words in a terminal; ``lead`` is printed first, in bold.

    A style is a colour and ``bold`` or ``dim``: ``bold red``.
    """
    stream = sys.stderr if err else sys.stdout
    width = columns_of(stream) if stream.isatty() or not err else None
    for number, line in enumerate(printable(lead + text, keep="\n\t").split("\n")):
        if len(line) > _LONGEST_LINE:
            line = f"{line[:_LONGEST_LINE]}... and {len(line) - _LONGEST_LINE:,} more characters"
        hanging = line[: len(line) - len(line.lstrip())] + _HANGING
        for index, part in enumerate([line] if width is None else wrap(line, width, hanging)):
            part = part.replace(NO_BREAK, " ")
            first = len(printable(lead, keep="\n\t")) if number == index == 0 else 0
            _put(_styled(part[:first], "bold") + _styled(part[first:], style), stream)


def say_line(pieces: Iterable[str | Cell], *, err: bool = False) -> None:
    """Print one line of pieces, each in its style, as it is: its caller has wrapped it."""
    cells = (piece if isinstance(piece, Cell) else styled(piece, "") for piece in pieces)
    text = "".join(_styled(printable(cell.lines[0]), cell.style) for cell in cells)
    _put(text, sys.stderr if err else sys.stdout)


def say_piece(text: str) -> None:
    """Print a fragment of a longer text without a line break."""
    _put(printable(text, keep="\n\t"), sys.stdout, nl=False)


def emit(text: str) -> None:
    """Print machine-readable text such as YAML verbatim; only a terminal gets escaped control characters."""
    _put(printable(text, keep="\n\t") if sys.stdout.isatty() else text, sys.stdout, nl=False)


def print_json(data: Any) -> None:
    """Print data as indented JSON, with control and unprintable characters escaped."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    text = json.dumps(data, indent=2, ensure_ascii=encoding != "utf8")
    _put(re.sub(_UNSAFE_IN_TERMINALS, lambda match: f"\\u{ord(match[0]):04x}", text), sys.stdout)


def print_written(paths: Iterable[Path] | None) -> None:
    """Print the paths of the files that a command wrote with ``-o``."""
    for path in paths or ():
        say(f"\nWrote {path}")


class _Held(io.StringIO):
    """A terminal whose text is held back."""

    def isatty(self) -> bool:
        return True


@contextlib.contextmanager
def paged() -> Iterator[None]:
    """Show the text printed within in the user's pager, if it is longer than the terminal, as git does."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield
        return
    with contextlib.redirect_stdout(_Held()) as held:
        yield
    import pydoc

    text = held.getvalue()
    if text.count("\n") < shutil.get_terminal_size().lines:
        _put(text, sys.stdout, nl=False)
    else:
        os.environ.setdefault("LESS", "FRX")
        pydoc.pager(text)


def styled(text: str, style: str) -> Cell:
    """A cell with a style, such as ``bold red``."""
    return Cell((text,), style)


def print_table(
    columns: Sequence[Column | str], rows: Iterable[Sequence[CellText]], width: int | None = None
) -> None:
    """Print a table that fits the terminal, or ``width`` columns, without losing names or figures.

    Columns adapt as :class:`cli.terminal.table_layout.Column` says; those that are left out are named below the table.
    """
    shown = [Column(column) if isinstance(column, str) else column for column in columns]
    heads = [column._replace(head=printable(column.head)) for column in shown]
    cells = [[_cell(cell) for cell in row] for row in rows]
    layout = TableLayout(heads, cells, width or columns_of(sys.stdout))
    for index, part in enumerate(layout.parts()):
        if index:
            say()
        text = "\n".join("".join(_styled(piece, style) for piece, style in line) for line in part)
        _put(text.replace(NO_BREAK, " "), sys.stdout)
    if width is None and layout.omitted:
        say(f"{layout.width} columns have no room for {', '.join(layout.omitted)}.", "dim")


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
    """False if the environment disables colours, else None, which leaves it to the terminal."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def console() -> Console:
    """Standard output for character graphics, as wide as the terminal, or 160 columns without one."""
    from rich.console import Console

    made = Console(markup=False, emoji=False, highlight=False)
    made.width = columns_of(sys.stdout) or _PIPED_COLUMNS
    return made
