"""The guides of targets and layouts have a table with every row that the code has."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from exporters.layouts import LAYOUTS
from exporters.targets import TARGETS

DOCS = Path(__file__).parents[2] / "docs"


def test_every_target_and_layout_has_a_row():
    spec = importlib.util.spec_from_file_location("guide_tables", DOCS / "hooks" / "guide_tables.py")
    assert spec is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    for name, rows, known in (
        ("targets", tables.target_rows(), TARGETS),
        ("layouts", tables.layout_rows(), LAYOUTS),
    ):
        assert f"<!-- {name} -->" in (DOCS / "guides" / f"{name}.md").read_text("utf-8")
        heading, rule, *body = rows
        assert [row.split("`")[1] for row in body] == list(known)
        assert {row.count(" | ") for row in body} == {heading.count(" | ")}
        assert rule.count("|") == heading.count("|")
        assert sum("(default)" in row for row in body) == 1


def test_shown_sections_exist():
    page = (DOCS / "extending" / "target.md").read_text("utf-8")
    source = (DOCS.parent / "exporters" / "targets.py").read_text("utf-8")
    assert "exporters/targets.py:cpu" in page
    assert "# --8<-- [start:cpu]" in source
    assert "# --8<-- [end:cpu]" in source
