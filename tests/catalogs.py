"""A catalog of every preset, for tests of its size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from exporters.export import export
from exporters.layouts import LAYOUTS
from exporters.making.catalog import Catalog, catalog
from exporters.steps.options import ExportOptions
from specs.language.load import load
from specs.language.preset_files import preset_names
from zoo.catalog.changes import data_of


def catalog_of_presets(directory: Path) -> Catalog:
    """The catalog that all presets would have: their drawings and costs, and the records of one verified export."""
    export(load("tiny-gpt"), directory / "one", ExportOptions())
    found = catalog(directory, None, "")
    (one,) = found.entries
    entries = tuple(replace(one, name=f"{name}/portable-fp32", spec=load(name)) for name in preset_names())
    assert all(entry.client == LAYOUTS["onnx"].client for entry in entries)
    return replace(found, entries=entries, data=data_of(entries, None, "")[1])
