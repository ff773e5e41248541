"""Exports of layers that share weights: their size, and where their weights are."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from exporters.export import export
from exporters.options import Options
from exporters.stored_size import stored_sizes
from tests.zoo.test_sharing import SHARING, model, side


@pytest.mark.slow
@pytest.mark.parametrize("target", ["portable", "cpu", "cuda", "tensorrt"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int4"])
def test_exports_store_shared_weights_once(target: str, precision: str, tmp_path: Path) -> None:
    spec = model(side(sharing=SHARING))
    export(spec, tmp_path / "x", Options(target=target, precision=precision))
    graph = onnx.load(tmp_path / "x/model.onnx", load_external_data=False).graph
    stored = [tensor.name for tensor in graph.initializer if "feed_forward.down" in tensor.name]
    assert all(".blocks.0." in name or ".blocks.1." in name for name in stored)
    assert stored
    assert (tmp_path / "x/model.onnx.data").stat().st_size == stored_sizes(spec, target)[precision]
