"""Exports of small models, and what there is in a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor

from exporters.data.data_file import Region
from exporters.export import export
from exporters.graph.content import StoredContent
from exporters.graph.trace import trace_and_lower
from exporters.graph.values import Graph
from exporters.layouts import DEFAULT, LAYOUTS
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS
from specs.model.model import Model
from zoo.builder import assemble
from zoo.tracing.tasks import tasks

GRAPH_ONLY = ExportOptions(weights="none", verify=False)
UNVERIFIED = ExportOptions(verify=False)


def written(spec: Model, directory: Path, **options: Any) -> Export:
    """The export of a spec to a directory."""
    return export(spec, directory, ExportOptions(**options))


def verified(spec: Model, directory: Path, **options: Any) -> Export:
    """The export of a spec to a directory, after its verification."""
    result = written(spec, directory, **options)
    assert result.verification is not None
    assert result.verification.passed
    return result


def graphs(spec: Model) -> dict[str, Graph]:
    """The graphs of a spec by name, without weights."""
    model = assemble(spec)
    return {task.name: trace_and_lower(model, task, TARGETS["portable"]) for task in tasks(model, spec)}


def regions(path: Path) -> dict[str, Region]:
    """Where the weights of an ONNX file lie in its data file, by name."""
    found = {}
    for tensor in onnx.load(path, load_external_data=False).graph.initializer:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        if entries:
            assert entries["location"] == LAYOUTS[DEFAULT].data
            found[tensor.name] = Region(
                int(entries["offset"]), int(entries["length"]), StoredContent((tensor.name,))
            )
    return found


def stored(directory: Path, name: str = "model.onnx") -> dict[str, Tensor]:
    """The weights that a data file holds, flat, by name."""
    data = (directory / LAYOUTS[DEFAULT].data).read_bytes()
    return {
        key: torch.frombuffer(
            bytearray(data[region.offset : region.offset + region.length]), dtype=torch.float32
        )
        for key, region in regions(directory / name).items()
    }


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, hidden ones too."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
