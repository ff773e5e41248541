"""Every command at 80 columns and more: what decides is there, lines fit, and no word is broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import cli.terminal.render
from cli.tables.bench_tables import print_report
from cli.terminal.screen import Screen
from cli.terminal.table_layout import Cell, Column, TableLayout, cell_width
from exporters.benchmark.bench import BenchmarkReport, LoadedVariant, Timing
from exporters.benchmark.variant import Variant
from exporters.benchmark.workload import Workload
from specs.language.load import load
from tests.cli import program
from tests.zoo.sabotage import windows_see_the_future
from zoo.machine.bandwidth import Bandwidth

WIDTHS = (80, 100, 120, 200)
LONG = "decoder.block.attention.kind=multi_query"
NARROW = [
    each
    for s in ("decoder.layers=1", "d_model=16", "decoder.block.attention.heads=2")
    for each in ("--set", s)
]
HEADS = [
    each
    for s in ("d_model=96", "encoder.layers=1", "encoder.block.attention.heads=16")
    for each in ("--set", s)
]
LAYERS = ["--set", "encoder.layers=1"]


class Printed:
    """The tables that were printed, and the lines."""

    def __init__(self) -> None:
        self.tables: list[TableLayout] = []
        self.text = ""


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Printed:
    """What is printed in a terminal of 80 columns."""
    found = Printed()

    def recorded(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None) -> TableLayout:
        found.tables.append(TableLayout(columns, rows, width))
        return found.tables[-1]

    monkeypatch.setattr(cli.terminal.render, "TableLayout", recorded)
    monkeypatch.setenv("COLUMNS", "80")
    return found


def invoke(found: Printed, *arguments: Any, status: int = 0) -> None:
    result = program.invoke(*arguments)
    assert result.exit_code == status, result.output
    found.text = result.stdout


def check(found: Printed, *expected: str) -> None:
    """That lines fit and words are whole, at every width, and that 80 columns have what is expected."""
    assert found.tables
    told = " ".join(found.text.split())
    for each in expected:
        assert each in told, f"{each} is missing from\n{found.text}"
    for line in found.text.splitlines():
        assert cell_width(line) <= 80, line
    for table in found.tables:
        words = set(_words(table))
        for width in WIDTHS:
            parts = TableLayout(table.columns, table.rows, width).parts()
            lines = ["".join(text for text, _ in line) for part in parts for line in part]
            assert max(map(cell_width, lines)) <= width
            assert {word for line in lines for word in line.split() if "\u2500" not in word} <= words
            heads = " ".join(lines)
            for column in table.columns:
                if not column.rank:
                    assert all(word in heads for word in column.head.split())


def _words(table: TableLayout) -> Iterator[str]:
    for column in table.columns:
        yield from column.head.split()
    for row in table.rows:
        for cell in row:
            for line in cell.lines:
                yield from line.replace("\u00a0", " ").split()


def test_list(printed: Printed) -> None:
    invoke(printed, "list", "bert-*")
    check(printed, "bert-base-multilingual-cased 178M 2018", "summary")


def test_params(printed: Printed) -> None:
    invoke(printed, "params", "t5-small", "-v")
    check(printed, "cross_attention_norm", "60,506,624 100.0%")


@pytest.mark.slow
def test_build_and_its_verdicts(printed: Printed, tmp_path: Path) -> None:
    invoke(printed, "build", "tiny-gpt", *NARROW, "--precision", "int8", "-o", tmp_path / "out", "-v")
    check(printed, "ragged", "passed", "takes gives", "allowed", "verdict", "equal", "model.onnx.data")


@pytest.mark.slow
def test_report(printed: Printed) -> None:
    invoke(printed, "report", "t5-small", "-v")
    check(
        printed, "cross_attention", "encode bound by prefill bound by step bound by", "h100", "unfused attention",
    )  # fmt: skip
    invoke(printed, "report", "t5-small", "--symbolic")
    check(printed, ["12,288 B S²", "44,040,192 B S"][0], "element operations")


def test_diff(printed: Printed) -> None:
    invoke(printed, "diff", "gpt2", "llama-3-8b", "-v", status=1)
    check(printed, "feed_forward_norm", "B - A", "FLOPs", "training state with Adam")


def test_diff_of_exports(printed: Printed, tmp_path: Path) -> None:
    for name, options in {"a": [], "b": ["--precision", "int8"]}.items():
        invoke(printed, "export", "tiny-gpt", *NARROW[:2], "--no-verify", *options, "-o", tmp_path / name)
    invoke(printed, "diff", tmp_path / "a", tmp_path / "b", "-v", status=1)
    check(printed, "precision fp32 int8", "model.onnx.data")


def test_compare(printed: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    windows_see_the_future(monkeypatch)
    training = ["--steps", "1", "--batch", "1", "--task-length", "1", "-o", "curves.json"]
    variants = ["--with", LONG, "--with", "decoder.block.attention.window=4"]
    invoke(printed, "compare", "tiny-gpt", *variants, *training, status=1)
    check(printed, f"B {LONG}", "loss accuracy", "verdict", "sees the future", "Wrote curves.json")


def test_attend(printed: Printed, tmp_path: Path) -> None:
    drawn = tmp_path / "maps.svg"
    invoke(printed, "attend", "bert-tiny", *HEADS, "--ids", "1,2,3", "-o", drawn, "-v")
    heads = [part for part in printed.text.rpartition("uniform:")[2].split() if part.isdecimal()]
    assert {str(head) for head in range(16)} <= set(heads)
    # The name of a file is never broken, as it is there to be copied.
    printed.text, _, wrote = printed.text.partition("\nWrote")
    assert wrote.split()[0] == str(drawn)
    check(printed, "15 uniform")


RUNS = {
    "head.kind=none": ["length", "cosine", "1.0000"],
    "head={kind: classification, labels: 3}": ["label probability"],
}


@pytest.mark.parametrize("head", RUNS)
def test_run(printed: Printed, tmp_path: Path, head: str) -> None:
    expected = RUNS[head]
    invoke(printed, "export", "bert-tiny", *LAYERS, "--set", head, "--no-verify", "-o", tmp_path / "out")
    ids = [each for row in range(12) for each in ("--ids", ",".join(map(str, range(row + 1, row + 9))))]
    invoke(printed, "run", tmp_path / "out", *ids)
    check(printed, *expected)


def test_convert(printed: Printed, tmp_path: Path) -> None:
    invoke(printed, "convert", "bert-tiny", *LAYERS, "-o", tmp_path / "a", "-v")
    printed.text = printed.text.partition(str(tmp_path))[0]
    check(printed, "model.safetensors", "config.json")


def test_bench(printed: Printed, capsys: pytest.CaptureFixture[str]) -> None:
    spec = load("smollm2-135m")
    variants = [Variant(spec.name, spec, "onnxruntime", Path(), "tensorrt", f"int{4 * n}") for n in (1, 2)]
    loaded = [
        LoadedVariant(variants[0], "CPUExecutionProvider", 1.5, 10**9, 10**9),
        LoadedVariant(variants[1], fault="its process ended with status -9 (out of memory?)"),
    ]
    workloads = [Workload("step", (1,) * 8, past=1024), Workload("prompt", (128, 1024))]
    timings = [[Timing(variants[0], each, (1.25, 11.5, 100.0), 10**8)] for each in workloads]
    print_report(Screen(verbose=True), BenchmarkReport("cpu", 16, Bandwidth(1e10, 1e10), loaded, timings))
    printed.text = capsys.readouterr().out
    check(printed, "step 8 @ 1024", "p50 ms", "speed", "status -9", "smollm2-135m")


def test_prose_wraps_at_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = "bytes: " + ", ".join(f"float{n} 43{n}.9 MB" for n in range(30))
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        cli.terminal.render.say(text)
        shown = capsys.readouterr().out
        assert max(map(len, shown.splitlines())) <= width
        assert " ".join(shown.split()) == text
        assert not any(line.lstrip().startswith("MB") for line in shown.splitlines())
