"""ONNX Runtime's WebGPU provider computes what PyTorch does, and sees a graph that is wrong.

Its adapter is lavapipe of Mesa 25 or later, or else SwiftShader, from Debian's package chromium.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.verification import engine_claim
from exporters.verification.engines.engine import RUNNERS
from exporters.verification.engines.find import interpreter_of
from exporters.verification.engines.process import started
from exporters.verification.engines.table import SWIFTSHADER, engine_named
from exporters.verification.exact.graph import Constants, exact_file
from exporters.verification.result import VerificationError
from tests.engines.reductions import wide_heads
from tests.exporters.reduced_presets import structure
from tests.zoo.tiny import bert

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", ["bert-base", "llama-3.2-1b"])
def test_the_provider_computes_what_the_model_does(name: str, tmp_path: Path) -> None:
    options = ExportOptions(target="webgpu", engines=("webgpu",))
    verification = export(structure(name), tmp_path / "out", options).verification
    assert verification is not None
    (found,) = verification.engines
    print(f"{name}: {found}")
    assert found.outcome == "computed"
    assert (
        found.max_abs is not None
    )  # within the tolerances of verification, which are relative to the outputs


OPTIMIZED = """
import sys
from run_webgpu import WebGpu
graph, optimized, *drivers = sys.argv[1:]
provider = WebGpu()
provider.start({"software_vulkan": drivers})
settings = provider.runtime.SessionOptions()
settings.optimized_model_filepath = optimized
provider._session(graph, settings)
"""


@pytest.mark.parametrize(("precision", "norms"), [("fp32", 1), ("int4", 0)])
def test_the_runtime_moves_norms_of_queries_and_keys_into_attention(
    precision: str, norms: int, tmp_path: Path
) -> None:
    """Its optimizer makes a graph that does not load of products with two axes."""
    files = export(
        wide_heads("qwen3-0.6b"), tmp_path / "out", ExportOptions.of(target="webgpu", precision=precision)
    )
    engine, optimized = engine_named("webgpu"), tmp_path / "optimized.onnx"
    drivers = engine.options["software_vulkan"]
    command = [
        str(interpreter_of(engine)),
        "-c",
        OPTIMIZED,
        str(files.directory / "model.onnx"),
        str(optimized),
        *drivers,
    ]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(RUNNERS)})
    graph = onnx.load(optimized, load_external_data=False).graph
    attentions = [node for node in graph.node if node.op_type == "GroupQueryAttention"]
    assert attentions
    assert all(node.input[14:16] for node in attentions)
    assert sum(node.op_type == "SimplifiedLayerNormalization" for node in graph.node) == norms
    assert not any(node.op_type == "Pow" for node in graph.node)


@pytest.mark.usefixtures("new_processes")
@pytest.mark.skipif(not Path(SWIFTSHADER).exists(), reason="needs Debian's package chromium")
def test_what_an_adapter_cannot_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_ICD_FILENAMES", SWIFTSHADER)
    options = ExportOptions(target="webgpu", precision="q4f16", engines=("webgpu",))
    verification = export(bert(), tmp_path / "out", options).verification
    assert verification is not None
    assert "the files as stored were not run, as it has no float16 on this machine" in str(
        verification.engines[0]
    )


def test_a_wrong_scale_of_attention_fails_the_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def sabotaged(path: Path, half: object, constants: Constants) -> Iterator[Path]:
        with exact_file(path, half, constants) as place:  # type: ignore[arg-type]
            model = onnx.load(place, load_external_data=False)
            for node in model.graph.node:
                for attribute in node.attribute:
                    if node.op_type == "MultiHeadAttention" and attribute.name == "scale":
                        attribute.f *= 1.5
            onnx.save(model, place)
            yield place

    monkeypatch.setattr(engine_claim, "exact_file", sabotaged)
    with pytest.raises(VerificationError, match=r"webgpu 0\.4.*: failed: .* allowed"):
        export(bert(), tmp_path / "out", ExportOptions(target="webgpu", engines=("webgpu",)))
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("new_processes")
def test_a_weight_beyond_the_size_of_a_binding_is_read_in_parts(tmp_path: Path) -> None:
    """Adapters bind 128 MiB by default; the provider binds a larger weight in segments, so that no graph divides it."""
    rows, width = 40_000, 1024  # 164 MB
    table = (np.arange(rows * width, dtype=np.float32) % 100_003).reshape(rows, width)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "x"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", width])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    webgpu = engine_named("webgpu")
    settings = {"maxStorageBufferBindingSize": str(2**27)}
    python = interpreter_of(webgpu)
    assert python is not None, "webgpu is missing: run `make engines`"
    x = np.array([0, 5, rows // 2, rows - 7, rows - 1])
    with started(replace(webgpu, options={**webgpu.options, "settings": settings}), python) as process:
        options: dict[str, Any] = {"data": [], "entries": {}, "environment": {}, "nodes": {}}
        process.ask(do="load", graph="graph", path=str(path), options=options)
        np.testing.assert_array_equal(process.run("graph", {"x": x})["y"], table[x])
