"""Results that print as tables, in terminals and in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specs.base.printable import printable


@dataclass(frozen=True)
class ResultTable:
    """A title, column headings, and rows of text; columns of numbers are aligned to the right."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """The table as aligned plain text."""
        lines = [tuple(map(printable, row)) for row in (self.headings, *self.rows)]
        columns = [_aligned(column) for column in zip(*lines, strict=True)]
        aligned = ["  ".join(line) for line in zip(*columns, strict=True)]
        return "\n".join([printable(self.title), *(line.rstrip() for line in aligned)])

    def html(self) -> str:
        """The table as HTML."""
        from html import escape

        def row(cells: Sequence[str], tag: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{escape(printable(cell))}</{tag}>' for cell in cells)}</tr>"

        body = "".join(row(cells, "td") for cells in self.rows)
        return (
            f"<table><caption>{escape(printable(self.title))}</caption>"
            f"<thead>{row(self.headings, 'th')}</thead><tbody>{body}</tbody></table>"
        )


def _aligned(column: Sequence[str]) -> list[str]:
    """The cells of a column, heading first, padded to equal width."""
    width = max(map(len, column))
    is_numeric = all(not cell or cell[0].isdigit() for cell in column[1:])
    return [cell.rjust(width) if is_numeric else cell.ljust(width) for cell in column]
