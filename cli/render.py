"""How results are printed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PIPED_COLUMNS = 160
_FEWEST_COLUMNS = 80


def print_json(data: Any) -> None:
    """Data as indented JSON."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))


def console() -> Console:
    """Standard output, as wide as the terminal, or 160 columns where it is none; no table fits into less than 80."""
    from rich.console import Console

    fitted = sys.stdout.isatty() or "COLUMNS" in os.environ
    made = Console(width=None if fitted else _PIPED_COLUMNS, markup=False, emoji=False, highlight=False)
    made.width = max(made.width, _FEWEST_COLUMNS)
    return made


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table without lines; the columns named in ``right`` hold numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", no_wrap=column in right)
    return made


def print_lines(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> None:
    """A table of one line per row, as :func:`table` would have it; a terminal cuts what does not fit.

    Rich takes longer to lay out hundreds of rows than the program to find them.
    """
    import shutil

    lines = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [">" if name in right else "<" for name in header]
    texts = ["   ".join(f"{cell:{side}{width}}" for cell, side, width in zip(line, aligned, widths, strict=True)).rstrip()
             for line in lines]  # fmt: skip
    texts.insert(1, "\u2500" * max(map(len, texts)))
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for text in texts:
        cut = columns is not None and len(text) > columns
        typer.echo(text[: columns - 1] + "\u2026" if cut and columns else text)


def byte_text(count: int) -> str:
    """A size in decimal units: 437.9 MB."""
    size, units = float(count), ["B", "kB", "MB", "GB", "TB", "PB"]
    while size >= 999.95 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{count} B" if units[0] == "B" else f"{size:.1f} {units[0]}"
