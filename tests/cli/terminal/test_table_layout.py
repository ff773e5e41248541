"""Tables keep their names, verdicts and figures at every width, and no line breaks within a word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.terminal.table_layout import Cell, Column, TableLayout, cell_width, fold, wrap

WORDS = st.sampled_from(["a", "the", "norm", "at_most", "gate-up", "key.bias"])
PROSE = st.lists(WORDS, max_size=12).map(" ".join)
NAMES = st.sampled_from(["", "up", "attention", "cross_attention_norm"])
NUMBERS = st.sampled_from(["0", "85,054,464", "1.5e-07"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Column], list[list[Cell]]]:
    """Columns and rows, of which every cell has its column as style."""
    columns, kinds = [], []
    for place in range(draw(st.integers(1, 7))):
        kind = draw(st.sampled_from(["prose", "name", "number"]))
        columns.append(
            Column(
                draw(st.lists(WORDS, max_size=3).map(" ".join)),
                right=kind == "number",
                prose=draw(st.integers(8, 20)) if kind == "prose" else 0,
                rank=0 if place == 0 else draw(st.integers(0, 3)),
                pinned=place == 0,
            )
        )
        kinds.append({"prose": PROSE, "name": NAMES, "number": NUMBERS}[kind])
    rows = [
        [Cell((draw(kind),), str(place)) for place, kind in enumerate(kinds)]
        for _ in range(draw(st.integers(0, 2)))
    ]
    return columns, rows


def lines(table: TableLayout) -> list[str]:
    return ["".join(text for text, _ in line) for part in table.parts() for line in part]


@pytest.mark.slow
@given(tables(), st.integers(40, 200))
def test_a_table_fits_keeps_pinned_columns_and_breaks_no_word(
    given_table: tuple[list[Column], list[list[Cell]]], width: int
) -> None:
    columns, rows = given_table
    table = TableLayout(columns, rows, width)
    shown = lines(table)
    assert all(cell_width(line) <= width for line in shown)
    assert all(line == line.rstrip() for line in shown)
    words = {word for column in columns for word in column.head.split()}
    words |= {word for row in rows for cell in row for line in cell.lines for word in line.split()}
    assert {word for line in shown for word in line.split() if not word.startswith("\u2500")} <= words
    for place, column in enumerate(columns):
        pieces = [
            text for part in table.parts() for line in part for text, style in line if style == str(place)
        ]
        every = [text for row in rows for text in row[place].lines]
        if column.rank == 0 and not column.pinned:
            assert "".join(pieces).replace(" ", "") == "".join(every).replace(" ", "")
        assert {word for piece in pieces for word in piece.split()} <= words


@given(tables())
def test_a_pipe_gets_a_line_for_each_row(given_table: tuple[list[Column], list[list[Cell]]]) -> None:
    columns, rows = given_table
    (part,) = TableLayout(columns, rows, None).parts()
    assert len(part) == 2 + len(rows)


@given(st.text("ab  é中\u00a0", max_size=120), st.integers(8, 60))
def test_lines_wrap_at_spaces_and_lose_nothing(text: str, width: int) -> None:
    wrapped = wrap(text, width, "  ")
    assert [word for line in wrapped for word in line.split(" ") if word] == [w for w in text.split(" ") if w]
    longest = max([cell_width(word) for word in text.split(" ")])
    assert all(cell_width(line) <= width for line in wrapped) or longest > width - 2
    folded = fold(text, width)
    assert all(cell_width(line) <= width for line in folded)
    assert "".join(folded).replace(" ", "") == text.replace(" ", "")


def test_a_number_keeps_its_unit() -> None:
    assert wrap("int8 61.5 MB, int4 42.3 MB", 24, "  ") == ["int8 61.5 MB, int4", "  42.3 MB"]


def shape(width: int) -> list[str]:
    columns = [
        Column("name", pinned=True),
        Column("note", prose=10),
        Column("least", rank=2),
        Column("less", rank=1),
        *(Column(f"head {number}", right=True) for number in range(6)),
        Column("mean", right=True, pinned=True),
    ]
    cells = ["layer 0", "one two three four", "x" * 8, "y" * 8, *(f"{n}.00" for n in range(6)), "9.99"]
    return lines(TableLayout(columns, [[Cell((text,)) for text in cells]], width))


def test_columns_go_by_rank_and_then_go_on_below() -> None:
    everything = shape(120)
    assert everything[2].split() == [
        "layer", "0", "one", "two", "three", "four", "x" * 8, "y" * 8,
        "0.00", "1.00", "2.00", "3.00", "4.00", "5.00", "9.99",
    ]  # fmt: skip
    assert ["x" * 8 in "".join(shape(width)) for width in (120, 90, 78, 60)] == [True, True, False, False]
    assert ["y" * 8 in "".join(shape(width)) for width in (120, 90, 78, 60)] == [True, True, True, False]
    narrow = shape(40)
    assert sum("layer 0" in line for line in narrow) == sum("9.99" in line for line in narrow) == 2
    assert [f"{n}.00" in "".join(narrow) for n in range(6)] == [True] * 6
