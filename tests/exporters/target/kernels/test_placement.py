"""Nodes without a CUDA kernel: what the recorded table says, beside the real provider."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from exporters.export import export
from exporters.graph.precisions import PRECISIONS as EVERY_PRECISION
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from exporters.target.kernels.placement import placement
from exporters.target.kernels.table import KernelTable, table_of
from exporters.target.kernels.widening import widened
from exporters.target.providers import CUDA
from exporters.target.targets import TARGETS
from specs.base.errors import UserError
from specs.model.model import Model
from tests.cuda.build import build
from tests.cuda.place import placed
from tests.cuda.record import TABLE, kernels_of_provider
from tests.engines.reductions import wide_heads
from tests.exporters.reduced_presets import structure, structures
from tests.exporters.whole.test_every_preset import EXHAUSTIVE
from tests.thinned import one_in
from zoo.record.records import PlacementRecord

SHAPES = {"Add", "Cast", "Concat", "Div", "Equal", "Gather", "Greater", "Mod", "Mul", "Range", "Slice", "Squeeze", "Sub", "Unsqueeze"}  # fmt: skip
"""Operations on the small integers that shapes are made of, which the provider leaves where the shapes are read."""

QUICK = ("bert-base", "gpt2", "llama-3.2-1b", "t5-small", "mamba-1.4b", "bamba-9b")
PRECISIONS = [name for name in EVERY_PRECISION if name not in TARGETS["cuda"].unsupported_precisions]
LOOPS = "control flow"
CUDNN = "cuDNN is unavailable"
"""What the provider says of a node that calls cuDNN when it is made, which the libraries here do not stand for."""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("cuda")
    build(place)
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def table() -> KernelTable:
    found = table_of(CUDA)
    assert found is not None
    return found


def _check(written: Export, libraries: Path) -> None:
    """The provider copies nothing, and captures the graphs that the records say it does."""
    graphs = written.manifest.graphs
    found = placed([written.directory / name for name in graphs], libraries)
    for (name, graph), real in zip(graphs.items(), found, strict=True):
        assert graph.placement is not None
        if CUDNN in real.get("error", ""):  # an LSTM computes sizes with it
            assert "LSTM" in real["error"] or "Rnn" in real["error"]
            continue
        assert real.get("error") is None, f"{name}: {real['error']}"
        assert not graph.placement.on_cpu, name
        assert set(real["on_cpu"]) <= SHAPES, name
        assert not real["copies"], name
        assert (LOOPS in real["not_captured"]) == (LOOPS in graph.placement.not_captured), name
        assert LOOPS in real["not_captured"] or not real["not_captured"], name


@one_in(6)
@pytest.mark.parametrize("name", QUICK)
def test_the_provider_places_every_node_as_recorded(name: str, libraries: Path, tmp_path: Path) -> None:
    options = ExportOptions(target="cuda", precision="fp16", verify=False)
    _check(export(structure(name), tmp_path / "x", options), libraries)


@pytest.mark.parametrize("precision", ["fp16", pytest.param("bf16", marks=pytest.mark.slow)])
def test_the_provider_moves_norms_of_queries_and_keys_into_attention(
    precision: str, libraries: Path, tmp_path: Path
) -> None:
    """Its optimizer once made a graph that does not load of products with two axes."""
    written = export(
        wide_heads("qwen3-0.6b"),
        tmp_path / "x",
        ExportOptions.of(target="cuda", precision=precision, verify=False),
    )
    _check(written, libraries)
    graph = onnx.load(written.directory / "model.onnx.optimized", load_external_data=False).graph
    attentions = [node for node in graph.node if node.op_type == "GroupQueryAttention"]
    assert attentions
    assert all(len(node.input) == 16 for node in attentions)


@pytest.mark.slow
@pytest.mark.parametrize("reduced", [structure, wide_heads], ids=["narrow", "wide"])
@pytest.mark.parametrize("part", range(8))
def test_the_provider_places_every_structure(
    part: int, reduced: Callable[[str], Model], libraries: Path, tmp_path: Path
) -> None:
    """Structures take turns between the precisions, unless all are asked for. Heads keep their width, on which attention is fused."""
    for number, name in enumerate(structures()):
        for turn, precision in enumerate(PRECISIONS):
            if number % 8 == part and (EXHAUSTIVE or (number // 8 + part) % len(PRECISIONS) == turn):
                options = ExportOptions.of(target="cuda", precision=precision, verify=False)
                _check(export(reduced(name), tmp_path / "x", options), libraries)


@pytest.mark.slow
def test_the_recorded_kernels_are_those_of_the_installed_provider(libraries: Path) -> None:
    recorded = json.loads(TABLE.read_text("utf-8"))
    if recorded["source"] != f"onnxruntime {onnxruntime.__version__}":
        pytest.skip(f"the table is of {recorded['source']}")
    assert kernels_of_provider(libraries) == recorded, "Run `python -m tests.cuda.record`."


def _model(operation: str, dtype: int, opset: int = 18, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(operation, ["x"], ["y"], name="node", **attributes)
    inputs, outputs = ([helper.make_tensor_value_info(name, dtype, ["n"])] for name in ("x", "y"))
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def test_a_node_without_a_kernel_is_recorded_with_its_copies(
    table: KernelTable, libraries: Path, tmp_path: Path
) -> None:
    model = _model("Acosh", TensorProto.FLOAT)
    assert placement(model, table) == PlacementRecord(
        provider=CUDA,
        kernels=table.source,
        on_cpu={"Acosh (float)": 1},
        copies=2,
        not_captured="nodes run on the CPU: Acosh (float)",
    )
    onnx.save(model, tmp_path / "model.onnx")
    (real,) = placed([tmp_path / "model.onnx"], libraries)
    assert real["on_cpu"] == {"Acosh": 1}


def test_bfloat16_without_a_kernel_is_computed_in_float32(
    table: KernelTable, libraries: Path, tmp_path: Path
) -> None:
    model = _model("Einsum", TensorProto.BFLOAT16, equation="i->i")
    onnx.save(model, tmp_path / "refused.onnx")
    onnx.save(widened(model, table), tmp_path / "widened.onnx")
    assert [node.op_type for node in model.graph.node] == ["Cast", "Einsum", "Cast"]
    refused, real = placed([tmp_path / "refused.onnx", tmp_path / "widened.onnx"], libraries)
    assert "error" in refused
    assert real == {"on_cpu": {}, "copies": [], "not_captured": ""}


@pytest.mark.slow
def test_a_later_opset_is_avoided_where_the_provider_loses_a_kernel(tmp_path: Path) -> None:
    """In opset 22, which bfloat16 Softplus needs, CUDA has no Elu."""
    written = export(structure("apertus-70b"), tmp_path / "x", ExportOptions(target="cuda", precision="bf16"))
    (graph,) = written.manifest.graphs.values()
    assert graph.opset < 22
    assert graph.placement is not None
    assert not graph.placement.on_cpu


def test_a_graph_with_control_flow_is_not_captured(table: KernelTable, tmp_path: Path) -> None:
    written = export(structure("mamba-1.4b"), tmp_path / "x", ExportOptions(target="cuda", verify=False))
    (graph,) = written.manifest.graphs.values()
    assert graph.placement is not None
    assert graph.placement.not_captured == "control flow: Scan"


def test_a_graph_with_sizes_that_depend_on_data_is_not_captured(tmp_path: Path) -> None:
    """The number of real tokens, which the provider does not look for before it captures."""
    written = export(structure("bert-base"), tmp_path / "x", ExportOptions(target="cuda", verify=False))
    (graph,) = written.manifest.graphs.values()
    assert graph.placement is not None
    assert graph.placement.not_captured == "sizes depend on data: NonZero"


def test_only_targets_whose_provider_has_a_table_are_placed(tmp_path: Path) -> None:
    written = export(structure("gpt2"), tmp_path / "x", ExportOptions(target="cpu", verify=False))
    assert [graph.placement for graph in written.manifest.graphs.values()] == [None]


def test_the_client_is_told_to_capture(tmp_path: Path) -> None:
    options = ExportOptions(target="cuda", precision="fp16", layout="genai", cuda_graph=True, verify=False)
    written = export(structure("llama-3.2-1b"), tmp_path / "x", options)
    config = json.loads((written.directory / "genai_config.json").read_text("utf-8"))
    assert config["model"]["decoder"]["session_options"]["provider_options"] == [
        {"cuda": {"enable_cuda_graph": "1"}}
    ]
    assert written.manifest.options.cuda_graph


def test_a_graph_that_cannot_be_captured_is_refused(tmp_path: Path) -> None:
    """Mixtures that MoE does not compute choose experts in a Scan."""
    options = ExportOptions(target="cuda", precision="fp16", layout="genai", cuda_graph=True, verify=False)
    with pytest.raises(UserError) as error:
        export(structure("llama-4-scout-17b-16e-text"), tmp_path / "x", options)
    assert str(error.value) == (
        "model.onnx cannot be captured as a CUDA graph: control flow: If, Scan\n  Leave out cuda_graph."
    )
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(("target", "layout"), [("cpu", "genai"), ("cuda", "onnx")])
def test_only_a_client_that_binds_buffers_can_capture(target: str, layout: str) -> None:
    with pytest.raises(UserError) as error:
        ExportOptions(target=target, layout=layout, cuda_graph=True)
    assert str(error.value) == (
        "cuda_graph needs a client that binds its inputs to fixed buffers of the device\n"
        f"  value: target {target}, layout {layout}\n"
        "  Use target cuda and layout genai, or leave it out."
    )
