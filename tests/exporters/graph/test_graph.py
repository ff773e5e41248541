"""What the graphs are like: nothing twice, nothing unused, names that people and clients know."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from exporters.data.proto import IR_VERSIONS
from exporters.export import export
from exporters.graph.builder import GraphBuilder
from exporters.graph.values import Graph
from exporters.target.runtimes import table
from exporters.target.targets import OPERATIONS, TARGETS
from specs.model.model import Model
from tests.exporters.graphs import Module, graph_of, message
from tests.exporters.models import GRAPH_ONLY, UNVERIFIED, graphs, regions, stored
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, gpt2, t5
from zoo import functional
from zoo.builder import assemble
from zoo.tracing.symbols import Placeholder, Symbols
from zoo.tracing.tasks import tasks

POSITIONS: list[dict[str, Any]] = [
    {"kind": "learned"}, {"kind": "sinusoidal"}, {"kind": "rope"}, {"kind": "alibi"}, {"kind": "relative_bias"}, {"kind": "none"},
]  # fmt: skip


def deep(make: Any, layers: int, **changes: Any) -> Model:
    data = make(**changes).model_dump()
    for stack in ("encoder", "decoder"):
        if data[stack]:
            data[stack]["layers"] = layers
    return Model.model_validate(data)


def operations(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes)


SHARED = ["Range", "Where", "Cos", "Sin", "CumSum", "Less", "LessOrEqual", "Equal", "Not", "And", "Shape", "Clip", "Cast",
          "Slice", "Expand", "Abs"]  # fmt: skip
"""Operations of masks, positions, angles and shapes: none belongs to a layer."""


@one_in(3)
@pytest.mark.parametrize("position", POSITIONS, ids=lambda position: position["kind"])
@pytest.mark.parametrize("make", [bert, gpt2, t5])
def test_shared_tensors_are_written_once(make: Any, position: dict[str, Any]) -> None:
    changes = {"context_length": 16, "position": position}
    shallow, many = (graphs(deep(make, layers, **changes)) for layers in (1, 5))
    for name in shallow:
        few, more = operations(shallow[name]), operations(many[name])
        if position["kind"] == "rope":  # slices of the rotated heads are of each layer
            few["Slice"], more["Slice"] = 0, 0
        assert {op: few[op] for op in SHARED} == {op: more[op] for op in SHARED}
        assert more["Softmax"] == 5 * few["Softmax"]
        assert sum(more.values()) > sum(few.values())


def test_constants_do_not_grow_with_depth() -> None:
    few, more = (graphs(deep(gpt2, layers))["model"] for layers in (1, 5))
    names = [set(graph.constants) for graph in (few, more)]
    assert names[0] == names[1] != set()


def test_equal_calls_are_one_node_and_different_ones_are_not() -> None:
    model = graph_of(
        Module(lambda x: (x.tanh() + x.tanh(), x.tanh() * 2, x.sum(1) * 3, x.sum(0, keepdim=True)[0])),
        "f B T 6",
    )
    assert Counter(node.op_type for node in model.graph) == {
        "Tanh": 1, "Add": 1, "Mul": 2, "ReduceSum": 2, "Squeeze": 1, "Slice": 1,
    }  # fmt: skip
    sums = graph_of(Module(lambda x: x.sum(1, keepdim=True) + x.sum(1)[:, None]), "f B T 6")
    assert Counter(node.op_type for node in sums.graph)["ReduceSum"] == 2


def test_constants_of_equal_value_and_type_are_one() -> None:
    builder = GraphBuilder(TARGETS["portable"], Symbols.of((), ()), ())
    assert builder.constant(1, torch.int64) is builder.constant(1, torch.int64)
    assert builder.constant(1, torch.int64) is not builder.constant(1, torch.int32)
    assert builder.constant([1], torch.int64) is not builder.constant(1, torch.int64)
    assert builder.constant(0.0, torch.float32) is not builder.constant(-0.0, torch.float32)


def test_unused_operations_are_not_written() -> None:
    unused = nn.Linear(6, 6)

    def function(layer: Any, x: Any) -> Any:
        layer(x)
        F.gelu(x)
        return x.relu()

    model = graph_of(Module(function, a=unused), "f B T 6")
    assert [node.op_type for node in model.graph] == ["Relu"]
    assert not model.graph.initializers
    assert model.graph.opset_imports[""] == 18


def test_a_size_that_nothing_has_is_refused() -> None:
    symbols = Symbols.of((Placeholder("x", torch.float32, ("B",)),), ())
    builder = GraphBuilder(TARGETS["portable"], symbols, ())
    with pytest.raises(NotImplementedError, match="No tensor in the graph has the size of its result"):
        builder.size((1234, 5678))


def test_reshapes_of_reshapes_go_back_to_the_first() -> None:
    model = graph_of(
        Module(lambda x: x.flatten(1).unflatten(1, (-1, 6)).reshape(x.shape[0], -1, 3)), "f B T 6"
    )
    assert [node.op_type for node in model.graph].count("Reshape") == 1


def test_an_output_that_is_an_input_or_another_output_has_a_name_of_its_own() -> None:
    model = graph_of(
        Module(lambda layer, x: (x, x.tanh(), x.tanh(), x.tanh(), layer.weight), a=nn.Linear(2, 2)), "f B T 6"
    )
    assert [value.name for value in model.graph.outputs] == ["y0", "y1", "y2", "y3", "y4"]
    assert Counter(node.op_type for node in model.graph) == {"Identity": 4, "Tanh": 1}


@pytest.mark.parametrize("make", [bert, gpt2, t5])
def test_nodes_are_named_after_their_modules_and_weights_are_the_parameters(make: Any) -> None:
    spec = make()
    model = assemble(spec)
    modules = {path for path, _ in model.named_modules()}
    parameters = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    used: set[str] = set()
    for graph in graphs(spec).values():
        names = [node.name for node in graph.nodes]
        assert len(names) == len(set(names))
        assert {name.rpartition("/")[0] for name in names} <= modules
        assert any(
            name.startswith("encoder.blocks.1.") or name.startswith("decoder.blocks.1.") for name in names
        )
        assert {name: weight.shape for name, weight in graph.parameters.items()}.items() <= parameters.items()
        used |= graph.parameters.keys()
    assert used == parameters.keys()


def test_a_layers_operations_carry_its_path() -> None:
    names = {node.name for node in graphs(gpt2())["model"].nodes}
    assert "decoder.blocks.1.feed_forward.inner/Gelu" in names
    assert "decoder.blocks.0.attention/Softmax" in names
    assert "head.vocabulary/Gemm" in names


def test_a_tied_weight_is_stored_once(tmp_path: Path) -> None:
    wide = {"vocab_size": 5000, "d_model": 16}
    export(gpt2(**wide), tmp_path / "tied", UNVERIFIED)
    export(
        gpt2(**wide, head={"kind": "language_modeling", "tie_embeddings": False}),
        tmp_path / "untied",
        UNVERIFIED,
    )
    sizes = {name: (tmp_path / name / "model.onnx.data").stat().st_size for name in ("tied", "untied")}
    unique = sum(parameter.nbytes for parameter in assemble(gpt2(**wide)).parameters())
    assert unique <= sizes["tied"] < unique + 40 * 64 + 4096
    assert sizes["untied"] - sizes["tied"] == pytest.approx(5000 * 16 * 4, abs=4096)
    assert "head.vocabulary.weight" not in regions(tmp_path / "tied" / "model.onnx")


def test_the_two_graphs_of_an_encoder_decoder_share_their_weights(tmp_path: Path) -> None:
    spec = t5()
    export(spec, tmp_path / "t5", UNVERIFIED)
    encoder, decoder = (regions(tmp_path / "t5" / f"{name}_model.onnx") for name in ("encoder", "decoder"))
    both = encoder.keys() & decoder.keys()
    assert both == {"encoder_embedding.token.weight"}
    assert all(encoder[name] == decoder[name] for name in both)
    assert {path.name for path in (tmp_path / "t5").iterdir()} == {
        "encoder_model.onnx", "decoder_model.onnx", "model.onnx.data", "build.json", "export.json", "spec.yaml",
        "README.md",
    }  # fmt: skip


def test_weights_do_not_overlap_and_are_aligned(tmp_path: Path) -> None:
    export(gpt2(vocab_size=5000), tmp_path / "x", UNVERIFIED)
    found = sorted(regions(tmp_path / "x" / "model.onnx").values(), key=lambda region: region.offset)
    for before, after in itertools.pairwise(found):
        assert before.offset + before.length <= after.offset
    assert all(region.offset % (4096 if region.length >= 65536 else 64) == 0 for region in found)
    assert (tmp_path / "x" / "model.onnx.data").stat().st_size == found[-1].offset + found[-1].length
    assert any(region.length >= 65536 for region in found)


RELU = {**BLOCK, "feed_forward": {"kind": "mlp", "hidden": 12, "activation": "relu"}}


@pytest.mark.parametrize(("block", "opset"), [(BLOCK, 20), (RELU, 18)])
def test_the_opset_is_the_lowest_that_the_graph_needs(
    block: dict[str, Any], opset: int, tmp_path: Path
) -> None:
    spec = gpt2(decoder={"layers": 1, "block": block})
    facts = export(spec, tmp_path / "x", GRAPH_ONLY).graphs["model.onnx"]
    assert facts["opset"] == opset
    assert facts["minimum_runtime"] == f"onnxruntime {table()['features'][f'opset {opset}']}"
    model = onnx.load(tmp_path / "x" / "model.onnx", load_external_data=False)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", opset)]
    assert model.ir_version == facts["ir_version"] == IR_VERSIONS[opset]
    # What is below does not have the operations in use.
    for node in model.graph.node:
        assert onnx.defs.get_schema(node.op_type, opset).since_version <= opset
    if opset > 18:
        assert any(onnx.defs.get_schema(n.op_type, opset).since_version > 18 for n in model.graph.node)


def test_ir_versions_are_no_later_than_the_first_release_of_each_opset() -> None:
    first: dict[int, int] = {}
    for _, ir_version, opset, *_ in onnx.helper.VERSION_TABLE:
        first.setdefault(opset, ir_version)
    assert all(version <= first[opset] for opset, version in IR_VERSIONS.items())
    assert (IR_VERSIONS[18], IR_VERSIONS[20]) == (first[18], first[20])


def test_operations_came_with_the_opset_that_the_table_says() -> None:
    for name, operation in OPERATIONS.items():
        if not operation.domain:
            assert onnx.defs.get_schema(name, operation.since).since_version == operation.since


@one_in(2)
@pytest.mark.parametrize("weights", ["random", "none"])
@pytest.mark.parametrize("make", [bert, gpt2, t5])
def test_written_files_pass_the_checker_and_strict_shape_inference(
    make: Any, weights: str, tmp_path: Path
) -> None:
    result = export(make(), tmp_path / "x", UNVERIFIED if weights == "random" else GRAPH_ONLY)
    for name in result.graphs:
        path = tmp_path / "x" / name
        if weights == "random":
            onnx.checker.check_model(path, full_check=True)
        inferred = onnx.shape_inference.infer_shapes(
            onnx.load(path, load_external_data=False), check_type=True, strict_mode=True, data_prop=True
        )
        outputs = {value.name: value for value in inferred.graph.output}
        for label, dims in result.graphs[name]["outputs"].items():
            shape = [dim.dim_value or dim.dim_param for dim in outputs[label].type.tensor_type.shape.dim]
            assert shape == dims


def caches(prefix: str, layers: int, length: str, part: str = "") -> dict[str, list[Any]]:
    names = [f"{prefix}.{i}.{part}{what}" for i in range(layers) for what in ("key", "value")]
    return {name: ["batch_size", 2, length, 4] for name in names}


def test_an_encoder_has_the_names_that_clients_expect(tmp_path: Path) -> None:
    ids = ["batch_size", "sequence_length"]
    facts = export(bert(), tmp_path / "x", GRAPH_ONLY).graphs
    assert list(facts) == ["model.onnx"]
    assert list(facts["model.onnx"]["inputs"].items()) == [
        ("input_ids", ids),
        ("attention_mask", ids),
        ("token_type_ids", ids),
    ]
    assert facts["model.onnx"]["outputs"] == {"last_hidden_state": [*ids, 8]}
    without = export(bert(embedding={"norm": {"kind": "layer_norm"}}), tmp_path / "y", GRAPH_ONLY).graphs
    assert list(without["model.onnx"]["inputs"]) == ["input_ids", "attention_mask"]
    pooled = export(bert(head={"kind": "pooler"}), tmp_path / "z", GRAPH_ONLY).graphs
    assert pooled["model.onnx"]["outputs"] == {
        "last_hidden_state": [*ids, 8],
        "pooler_output": ["batch_size", 8],
    }


def test_a_decoder_has_the_names_that_clients_expect(tmp_path: Path) -> None:
    facts = export(gpt2(), tmp_path / "x", GRAPH_ONLY).graphs["model.onnx"]
    total = "past_sequence_length + sequence_length"
    assert list(facts["inputs"].items()) == [
        ("input_ids", ["batch_size", "sequence_length"]),
        ("attention_mask", ["batch_size", total]),
        *caches("past_key_values", 2, "past_sequence_length").items(),
    ]
    assert list(facts["outputs"].items()) == [
        ("logits", ["batch_size", "sequence_length", 20]),
        *caches("present", 2, total).items(),
    ]


def test_an_encoder_decoder_has_the_names_that_clients_expect(tmp_path: Path) -> None:
    facts = export(t5(), tmp_path / "x", GRAPH_ONLY).graphs
    encoder, decoder = facts["encoder_model.onnx"], facts["decoder_model.onnx"]
    source, past = "encoder_sequence_length", "past_decoder_sequence_length"
    assert list(encoder["inputs"].items()) == [
        ("input_ids", ["batch_size", source]),
        ("attention_mask", ["batch_size", source]),
    ]
    assert list(encoder["outputs"].items()) == [
        ("last_hidden_state", ["batch_size", source, 8]),
        *caches("present", 2, source, "encoder.").items(),
    ]
    assert list(decoder["inputs"].items()) == [
        ("input_ids", ["batch_size", "decoder_sequence_length"]),
        ("encoder_attention_mask", ["batch_size", source]),
        *[
            (f"past_key_values.{i}.{part}.{name}", ["batch_size", 2, length, 4])
            for i in (0, 1)
            for part, length in (("decoder", past), ("encoder", source))
            for name in ("key", "value")
        ],
    ]
    assert list(decoder["outputs"].items()) == [
        ("logits", ["batch_size", "decoder_sequence_length", 20]),
        *caches("present", 2, f"{past} + decoder_sequence_length", "decoder.").items(),
    ]


def test_the_decoder_of_an_encoder_decoder_projects_no_cross_attention_keys() -> None:
    names = graphs(t5())["decoder_model"].parameters
    assert not any("cross_attention.key" in name or "cross_attention.value" in name for name in names)
    assert any("cross_attention.query" in name for name in names)
    assert any("cross_attention.key" in name for name in graphs(t5())["encoder_model"].parameters)


def test_grouped_caches_have_as_many_heads_as_there_are_keys() -> None:
    grouped = {**BLOCK, "attention": {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "head_dim": 6}}
    spec = gpt2(decoder={"layers": 1, "block": grouped})
    inputs = {given.name: given.dims for given in tasks(assemble(spec), spec)[0].inputs}
    assert inputs["past_key_values.0.key"] == ("batch_size", 2, "past_sequence_length", 6)


def test_no_mask_is_a_parameter_and_none_repeats_the_heads_of_a_group() -> None:
    grouped = {**BLOCK, "attention": {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "head_dim": 6}}
    counts = operations(graphs(gpt2(decoder={"layers": 1, "block": grouped}))["model"])
    assert counts["Expand"] == counts["Tile"] == 0


def test_shapes_written_on_values_are_those_of_the_run(tmp_path: Path) -> None:
    result = export(gpt2(), tmp_path / "x", UNVERIFIED)
    model = onnx.load(tmp_path / "x" / "model.onnx")
    annotated = [value for value in model.graph.value_info if value.type.tensor_type.HasField("shape")]
    assert annotated
    chosen = annotated[:: max(1, len(annotated) // 40)]
    del model.graph.output[:]
    model.graph.output.extend(chosen)
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    sizes = {
        "batch_size": 2,
        "sequence_length": 3,
        "past_sequence_length": 4,
        "past_sequence_length + sequence_length": 7,
    }
    feeds = {}
    for name, dims in result.graphs["model.onnx"]["inputs"].items():
        shape = [dim if isinstance(dim, int) else sizes[dim] for dim in dims]
        feeds[name] = np.ones(shape, np.int64 if "cache" not in name and len(dims) == 2 else np.float32)
    for value, array in zip(chosen, session.run(None, feeds), strict=True):
        for dim, found in zip(value.type.tensor_type.shape.dim, array.shape, strict=True):
            assert (dim.dim_value or sizes.get(dim.dim_param, found)) == found, value.name


def test_a_functions_own_constants_are_inside_the_file(tmp_path: Path) -> None:
    export(t5(), tmp_path / "x", UNVERIFIED)
    weights = stored(tmp_path / "x", "decoder_model.onnx")
    assert not any(name.startswith("constant/") for name in weights)
    graph = onnx.load(tmp_path / "x" / "decoder_model.onnx", load_external_data=False).graph
    inside = [tensor for tensor in graph.initializer if not tensor.external_data]
    assert inside
    assert all(tensor.name.startswith("constant/") for tensor in inside)


def test_graph_builder_counts_domains_in_use_only() -> None:
    builder = GraphBuilder(TARGETS["portable"], Symbols.of((), ()), ())
    kept = builder.op("Thing", builder.constant(1.0, torch.float32), domain="com.microsoft")
    builder.op("Other", builder.constant(1.0, torch.float32), domain="elsewhere")
    kept.dtype, kept.dims = torch.float32, ()
    opsets = {entry.domain: entry.version for entry in message(builder.graph("x", {"y": kept})).opset_import}
    assert opsets == {"": 18, "com.microsoft": 1}


def test_the_same_function_in_two_modules_is_named_after_the_first() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = (Module(lambda x: functional.token_positions(x, 4)) for _ in range(2))

        def forward(self, x: Any) -> Any:
            return self.first(x) + self.second(x)

    names = [node.name for node in graph_of(Twice(), "f B T 6").graph]
    assert not any(name.startswith("second") for name in names)
