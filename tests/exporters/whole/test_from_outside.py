"""A target and a layout of another package: one row and one file, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

from exporters.layouts import LAYOUTS, LayoutError
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS
from specs.base.errors import UserError
from specs.files.export_options import PrecisionName
from specs.model.model import Model
from tests.cli.program import invoke
from tests.exporters.whole.outside_layout import add_layout
from tests.exporters.whole.outside_target import STICK, add_target
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, gpt2
from zoo import export


@pytest.fixture(autouse=True)
def added() -> Iterator[None]:
    tables: tuple[dict[str, Any], ...] = (TARGETS, LAYOUTS)
    before = [dict(table) for table in tables]
    add_target()
    add_layout()
    yield
    for table, rows in zip(tables, before, strict=True):
        table.clear()
        table.update(rows)


def wide() -> Model:
    """A decoder whose matrices are wide enough to have blocks, with biases."""
    return gpt2(d_model=64, decoder={"layers": 2, "block": {**BLOCK, "feed_forward": {"kind": "mlp", "hidden": 64, "activation": "gelu"}}})  # fmt: skip


@one_in(3)
@pytest.mark.parametrize(("precision", "suffix"), [("fp32", ""), ("int8", ""), ("int4", "-q4")])
def test_an_export_for_a_target_and_a_layout_of_a_package(
    precision: PrecisionName, suffix: str, tmp_path: Path
) -> None:
    result = export(wide(), tmp_path / "x", target="stick", layout="stick-files", precision=precision)
    assert result.verification is not None
    assert result.verification.passed
    directory = tmp_path / "x"
    assert {path.name for path in (directory / "graphs").iterdir()} == {f"model{suffix}.onnx", f"weights{suffix}.bin"}  # fmt: skip
    assert json.loads((directory / "stick.json").read_text()) == {"target": "stick", "shared": False}
    nodes = onnx.load(directory / "graphs" / f"model{suffix}.onnx", load_external_data=False).graph.node
    products = [node for node in nodes if node.op_type == "MatMulNBits"]
    assert bool(products) == (precision != "fp32")
    for node in products:
        assert "accuracy_level" in {attribute.name for attribute in node.attribute}
        assert len(node.input) == 3  # the kernels of this target take no bias
    assert not {"MatMulInteger", "GroupQueryAttention"} & {node.op_type for node in nodes}
    generator = Generator(open_export(directory))
    assert len(generator.generate([[1, 2, 3]], 4).continuations[0].ids) == 4


def test_its_rules_are_found_in_its_row(tmp_path: Path) -> None:
    assert STICK.quantized_dtype == torch.float32
    with pytest.raises(
        LayoutError, match=r"Stick cannot load .*: it loads only decoders\n  Use layout onnx or "
    ):
        export(bert(), tmp_path / "x", layout="stick-files")
    with pytest.raises(UserError, match="target stick does not support"):
        ExportOptions(target="stick", precision="int4", asymmetric=True)
    with pytest.raises(UserError, match="multiply 8-bit integers: portable, cpu\n  value: stick"):
        export(bert(), tmp_path / "x", target="stick", precision="int8", activations="static")
    with pytest.raises(UserError, match="via torch writes only layout onnx\n  value: stick-files"):
        ExportOptions(layout="stick-files", via="torch")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("command", ["build", "export"])
def test_help_lists_them(command: str) -> None:
    listed = " ".join(invoke(command, "--help").stdout.split())
    assert "--target portable|cpu|cuda|tensorrt|webgpu|stick Runtime platform" in listed
    assert "--layout onnx|genai|optimum|transformers-js|stick-files Client" in listed
