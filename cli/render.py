"""How results are printed."""

from __future__ import annotations

import json
import os
import sys
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


def byte_text(count: int) -> str:
    """A size in decimal units: 437.9 MB."""
    size, units = float(count), ["B", "kB", "MB", "GB", "TB", "PB"]
    while size >= 999.95 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{count} B" if units[0] == "B" else f"{size:.1f} {units[0]}"
