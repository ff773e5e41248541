"""Results of the public API print as tables, in a terminal and in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

import zoo
from zoo.core.result_table import ResultTable, Tabular

SPEC = "tiny-gpt"


class Cells(HTMLParser):
    """The texts of a table's cells, row by row."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)


def shown(result: Tabular) -> str:
    """The text of a result, after comparing it with the notebook's table."""
    text = str(result)
    table = result.table()
    rows = Cells(result._repr_html_()).rows
    assert [[cell for cell in row if cell] for row in (table.headings, *table.rows)] == rows
    for row in rows:
        assert all(cell in text for cell in row)
    assert text.splitlines()[0] == table.title
    return text


def test_parameters() -> None:
    text = shown(zoo.parameters(SPEC))
    assert text.startswith("tiny-gpt: 223,616 parameters\nmodule ")
    assert "decoder " in text


def test_report() -> None:
    text = shown(zoo.report(SPEC))
    assert text.startswith("tiny-gpt: 223,616 parameters, ")
    assert "active per token" in text


def test_check() -> None:
    text = shown(zoo.check(SPEC))
    assert text.startswith("Checks: passed\ncheck ")
    assert "gradients" in text


def test_diff() -> None:
    text = shown(zoo.diff(SPEC, zoo.load(SPEC, ["position.kind=rope"])))
    assert "position" in text
    assert "223,616" in text


def test_export(tmp_path: Path) -> None:
    text = shown(zoo.export(SPEC, tmp_path / "out"))
    assert "verified in onnxruntime " in text
    assert "model.onnx.data" in text


def test_draw() -> None:
    assert zoo.draw(SPEC)._repr_svg_().startswith("<svg")


@pytest.mark.parametrize("cell", ["<script>", "a & b"])
def test_names_are_escaped(cell: str) -> None:
    table = ResultTable(cell, ("name",), [(cell,)])
    assert cell not in table.html()
    assert Cells(table.html()).rows[1] == [cell]
    assert "\x1b" not in ResultTable("a", ("name",), [("\x1b[31m",)]).text()
