"""Results of the public API print as tables, in a terminal and in a notebook, and have reprs of one line."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import zoo
from specs.base.result_table import ResultTable
from specs.base.tabular import Tabular

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
    assert repr(result) == f"<{type(result).__name__} {table.title}; print() for the table>"
    assert len(repr(result).splitlines()) == 1
    return text


def test_spec() -> None:
    text = shown(zoo.load("gemma2-2b"))
    assert text.startswith("gemma2-2b: decoder, 26 layers, 2,304 wide\n")
    assert "\ndecoder                         layers [{pattern: [{use: local}, {}], repeat: 13}]\n" in text
    assert "\ndecoder.blocks.local.attention  window 4,096\n" in text


def test_spec_of_a_block_without_the_attention_of_the_others() -> None:
    text = shown(zoo.load("qwen3-next-80b-a3b"))
    assert "\ndecoder.blocks.linear_attention        attention null\n" in text
    assert "\ndecoder.blocks.linear_attention.mixer  gated_delta_net, heads 32, key_heads 16\n" in text


def test_presets() -> None:
    presets = zoo.presets("gpt2*")
    text = shown(presets)
    assert text.startswith(f"{len(presets)} presets\nname ")
    assert "gpt2         decoder         124,439,808  2019" in text
    record = shown(presets[0])
    assert record.startswith("gpt2: decoder, 124,439,808 parameters, 2019\n")
    assert "text generation" in record


def test_parallel_plan() -> None:
    text = shown(zoo.parallel_plan(SPEC))
    assert "tensor parallelism of degree 1, 2, 4\n" in text
    assert "decoder.blocks.3.feed_forward.up    columns\n" in text


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
    assert re.match(r"tiny-gpt: passed \d+ checks\ncheck ", text)
    assert "gradients" in text


def test_diff() -> None:
    text = shown(zoo.diff(SPEC, zoo.load(SPEC, ["position.kind=rope"])))
    assert "position" in text
    assert "223,616" in text


def test_export(tmp_path: Path) -> None:
    text = shown(zoo.export(SPEC, tmp_path / "out"))
    assert "verified in onnxruntime " in text
    assert "model.onnx.data" in text
    again = shown(zoo.verify(tmp_path / "out"))
    assert again.startswith(f"{tmp_path / 'out'}: passed, largest difference ")
    assert "outputs compared with PyTorch, largest difference" in again
    (tmp_path / "out" / "model.onnx").write_bytes(b"")
    assert shown(zoo.verify(tmp_path / "out")).startswith(f"{tmp_path / 'out'}: failed\n")


def test_draw() -> None:
    picture = zoo.draw(SPEC)
    assert picture._repr_svg_().startswith("<svg")
    assert repr(picture) == "<Picture tiny-gpt; save() writes .svg, .png, .mmd, .md>"


@pytest.mark.parametrize("cell", ["<script>", "a & b"])
def test_names_are_escaped(cell: str) -> None:
    table = ResultTable(cell, ("name",), [(cell,)])
    assert cell not in table.html()
    assert Cells(table.html()).rows[1] == [cell]
    assert "\x1b" not in ResultTable("a", ("name",), [("\x1b[31m",)]).text()
