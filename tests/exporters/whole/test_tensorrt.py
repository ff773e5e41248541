"""Graphs for TensorRT: standard operations alone, caches of fixed length, and what is known without running them there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest

from exporters.export import export
from exporters.graph.checking import InvalidGraphError, check_graph
from exporters.graph.emitters import registry
from exporters.graph.emitters.registry import Call, Operand
from exporters.graph.fusing import functions
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from exporters.target.providers import present
from exporters.target.targets import TARGETS
from exporters.verification.result import REDUCED, VerificationError
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.reduced_presets import structure
from tests.thinned import one_in
from tests.zoo.tiny import bert, gpt2, llava, t5, whisper
from zoo import functional
from zoo.core.reduced import (
    fewer_experts,
    fewer_layers,
    narrowed,
    short_switch_lengths,
    small_limits,
    small_tables,
)
from zoo.record.records import CacheRecord

CUDA = "CUDAExecutionProvider" in present(TARGETS["cuda"].providers)
LLAMA = gpt2(
    d_model=64, position={"kind": "rope"},
    decoder={
        "layers": 2,
        "block": {
            "kind": "pre_norm", "norm": {"kind": "rms_norm"},
            "attention": {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "bias": False},
            "feed_forward": {"kind": "gated", "hidden": 12, "activation": "silu", "bias": False},
        },
    },
)  # fmt: skip


def small(preset: str, divisor: int) -> Model:
    """A preset of few layers and narrow ones."""
    return narrowed(
        short_switch_lengths(fewer_experts(small_limits(small_tables(fewer_layers(load(preset, ())))))),
        divisor,
    )


def written(spec: Model, tmp_path: Path, **options: Any) -> Export:
    return export(spec, tmp_path / "out", ExportOptions(target="tensorrt", **options))


def graphs(result: Export) -> dict[str, onnx.ModelProto]:
    return {name: onnx.load(result.directory / name, load_external_data=False) for name in result.graphs}


@one_in(4)
@pytest.mark.parametrize(
    ("spec", "operations"),
    [
        (bert(d_model=32), {"model.onnx": {"Gelu": 2, "Attention": 2}}),
        (gpt2(d_model=32), {"model.onnx": {"Gelu": 2, "Attention": 2, "TensorScatter": 4}}),
        (
            LLAMA,
            {"model.onnx": {"Attention": 2, "RotaryEmbedding": 4, "RMSNormalization": 5, "TensorScatter": 4}},
        ),
        (
            t5(d_model=32),
            {
                "encoder_model.onnx": {"Attention": 2, "RMSNormalization": 5},
                "decoder_model.onnx": {"Attention": 4, "RMSNormalization": 7, "TensorScatter": 4},
            },
        ),
    ],
    ids=["bert", "gpt2", "llama", "t5"],
)
def test_the_operations_of_each_graph(
    spec: Model, operations: dict[str, dict[str, int]], tmp_path: Path
) -> None:
    length = None if spec.context_length else 12
    result = written(spec, tmp_path, precision="fp16", cache_length=length)
    assert {name: facts["operations"] for name, facts in result.graphs.items()} == operations
    assert all(facts["unfused"] == [] for facts in result.graphs.values())
    for name, graph in graphs(result).items():
        assert {node.domain for node in graph.graph.node} == {""}
        assert [entry.domain for entry in graph.opset_import] == [""]
        scatters = "TensorScatter" in operations[name]
        assert (graph.opset_import[0].version, graph.ir_version) == ((24, 12) if scatters else (23, 11))


PRESETS = [
    ("modernbert-base", 16),  # an encoder with rotation, and windows on both sides
    ("vit-base-16", 16),
    ("gpt2", 16),
    ("smollm2-135m", 16),  # grouped heads
    ("qwen3-0.6b", 16),  # queries and keys normed before they are rotated
    ("gemma2-2b", 16),  # windows in every other layer, soft caps
    ("gemma3-1b", 16),  # positions of their own in some layers
    ("gpt-oss-20b", 16),  # sinks, experts
    ("bloom-560m", 16),  # ALiBi
    ("falcon-rw-1b", 16),  # ALiBi by the places of keys
    ("gpt-j-6b", 16),  # interleaved, partial rotation
    ("phi-3.5-mini", 8),  # angles that depend on the length of the input
    ("deepseek-v2-lite", 16),  # keys and values of two widths
    ("bart-base", 16),
    ("whisper-tiny", 16),
]


@one_in(2)
@pytest.mark.parametrize("off", [-1, 1], ids=["sees the next token", "does not see itself"])
def test_faulty_models_are_caught(off: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = functional.attention_bias.__wrapped__  # type: ignore[attr-defined]

    def bias(mask: Any, position: Any, queries: Any, keys: Any, *rest: Any, **named: Any) -> Any:
        return whole(mask, position, queries, keys if keys is None else keys + off, *rest, **named)

    monkeypatch.setattr(functional.attention_bias, "__wrapped__", bias)
    with pytest.raises(VerificationError):
        written(gpt2(), tmp_path)


@pytest.mark.slow
def test_keys_in_the_wrong_place_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = functions.whole_write

    def one_off(call: Call, past: Operand, new: Operand, start: Operand) -> Any:
        later = call.op("Add", start.value, call.graph.ints(1))
        return call.op("TensorScatter", past.value, new.value, later, axis=2)

    monkeypatch.setitem(registry._emitters, whole, one_off)
    with pytest.raises(VerificationError):
        written(gpt2(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "divisor"), PRESETS)
def test_presets(preset: str, divisor: int, tmp_path: Path) -> None:
    spec = small(preset, divisor)
    result = written(spec, tmp_path, cache_length=40 if spec.decoder else None)
    assert result.verification is not None
    if spec.decoder is not None:
        cases = {comparison.case.removeprefix(REDUCED) for comparison in result.verification.comparisons}
        assert {
            "prompt, then steps", "padded prompt, then steps", "in one buffer", "prompt in pieces",
        } <= cases  # fmt: skip
        assert result.manifest.cache == CacheRecord(kind="shared", padding="right", length=40)
    for facts in result.graphs.values():
        assert facts["checked"]["ranked"] == facts["checked"]["results"] > 0


def test_a_cache_is_an_input_and_an_output_of_fixed_length(tmp_path: Path) -> None:
    """As TensorRT asks of one that is written in place."""
    facts = written(gpt2(), tmp_path, cache_length=7, verify=False).graphs["model.onnx"]
    cache = ["batch_size", 2, 7, 4]
    assert facts["inputs"] == {
        "input_ids": ["batch_size", "sequence_length"],
        "position_ids": ["batch_size", "sequence_length"],
        **{f"past_key_values.{layer}.{part}": cache for layer in range(2) for part in ("key", "value")},
    }
    graph = onnx.load(tmp_path / "out/model.onnx", load_external_data=False).graph
    inputs, outputs = ({value.name for value in values} for values in (graph.input, graph.output))
    for node in graph.node:
        if node.op_type == "TensorScatter":
            assert node.input[0] in inputs
            assert node.output[0] in outputs


def test_the_cache_length_defaults_to_the_context_length(tmp_path: Path) -> None:
    result = written(gpt2(), tmp_path, verify=False)
    assert result.manifest.cache == CacheRecord(kind="shared", padding="right", length=10)


@pytest.mark.parametrize(
    ("spec", "options", "reason"),
    [
        (t5(), {}, "tiny-t5 has no context_length\n  Pass cache_length 1024"),
        (gpt2(), {"cache_length": 11}, "must not exceed the context_length, which is 10\n  value: 11\n  Use 10."),
        (gpt2(), {"cache_length": 0}, "cache_length must be greater than 0\n  value: 0\n  Use 1 or more."),
        (
            llava(),
            {"cache_length": 9},
            "must be at least 10, for an image and some text\n  value: 9\n  Use 10 or more.",
        ),
        (gpt2(), {"cache_length": 8, "target": "cpu"}, "target cpu has growing caches, unlike target tensorrt"),
        (
            gpt2(),
            {"layout": "genai"},
            "onnxruntime-genai cannot load tiny-gpt2: it has no execution provider for target",
        ),
        (bert(), {"cache_length": 8}, "tiny-bert has no decoder, and so no cache"),
    ],
)  # fmt: skip
def test_caches_that_cannot_be(spec: Model, options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=reason.replace("(", r"\(")):
        export(spec, tmp_path / "out", ExportOptions(**{"target": "tensorrt", **options}))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("preset", "divisor", "precision", "reason"),
    [
        ("gpt-oss-20b", 16, "fp16", "the operation does not support sinks"),
        ("deepseek-v2-lite", 16, "fp16", "keys and values have different widths"),
        ("gemma2-2b", 16, "bf16", "no kernel supports a softcap"),
        ("gpt2", 8, "int8", "heads are 8 wide, and kernels take 9 to 256"),
        ("gpt2", 4, "fp32", "target tensorrt has no kernel in float32"),
    ],
)
def test_an_unsupported_attention_stays_with_the_reason(
    preset: str, divisor: int, precision: str, reason: str, tmp_path: Path
) -> None:
    result = written(small(preset, divisor), tmp_path, verify=False, weights="none", precision=precision)
    facts = result.graphs["model.onnx"]
    assert facts["unfused"] == [f"Attention: decoder.blocks.0.attention: {reason}"]
    assert "Attention" not in facts["operations"]
    assert facts["operations"]["TensorScatter"] == 2 * len(small(preset, divisor).decoder.layer_blocks())


def test_attention_beside_a_recurrence_is_not_fused(tmp_path: Path) -> None:
    spec = structure("falcon-h1-0.5b")
    facts = written(spec, tmp_path, cache_length=40, verify=False, weights="none", precision="fp16").graphs
    beside = "no kernel where a recurrence runs beside it in the block"
    assert facts["model.onnx"]["unfused"] == [f"Attention: decoder.blocks.0.attention: {beside}"]


@pytest.mark.slow
def test_delta_rules_go_token_by_token(tmp_path: Path) -> None:
    """Chunks compute sizes from sizes, deeper than the compiler follows."""
    for target, operation in (("tensorrt", 0), ("portable", 1)):
        spec = structure("rwkv7-0.1b")
        result = export(spec, tmp_path / target, ExportOptions(target=target, cache_length=None))
        assert result.verification is not None
        graph = onnx.load(tmp_path / target / "model.onnx", load_external_data=False).graph
        assert ("If" in {node.op_type for node in graph.node}) == bool(operation)


@pytest.mark.skipif(CUDA, reason="a GPU is here")
@pytest.mark.parametrize(
    ("target", "provider"), [("tensorrt", "TensorrtExecutionProvider"), ("cuda", "CUDAExecutionProvider")]
)
def test_the_provider_that_did_not_run_is_named(target: str, provider: str, tmp_path: Path) -> None:
    verification = export(gpt2(), tmp_path / "out", ExportOptions(target=target)).verification
    assert verification is not None
    assert (verification.provider, verification.not_run) == ("CPUExecutionProvider", provider)
    assert verification.as_dict()["not_run"] == provider


def test_nothing_is_left_out_where_the_provider_ran(tmp_path: Path) -> None:
    verification = export(gpt2(), tmp_path / "out", ExportOptions()).verification
    assert verification is not None
    assert verification.not_run is None


@pytest.mark.gpu
@pytest.mark.skipif(not CUDA, reason="no GPU is here")
@pytest.mark.parametrize("spec", [bert(), gpt2(), LLAMA, whisper()], ids=["bert", "gpt2", "llama", "whisper"])
@pytest.mark.parametrize("target", ["cuda", "tensorrt"])
def test_on_a_gpu(spec: Model, target: str, tmp_path: Path) -> None:
    verification = export(spec, tmp_path / "out", ExportOptions(target=target)).verification
    assert verification is not None
    assert verification.provider != "CPUExecutionProvider"


@pytest.mark.parametrize("target", [*TARGETS])
def test_every_target_writes_valid_graphs(target: str, tmp_path: Path) -> None:
    result = export(bert(), tmp_path / "out", ExportOptions(target=target, weights="none", verify=False))
    facts = result.graphs["model.onnx"]["checked"]
    assert facts["ranked"] == facts["results"] > 0
    assert facts["shape_inference"] == "strict"


def test_a_graph_that_is_not_valid(tmp_path: Path) -> None:
    result = written(bert(), tmp_path, verify=False, weights="none")
    graph = onnx.load(result.directory / "model.onnx", load_external_data=False)
    wrong = onnx.ModelProto()
    wrong.CopyFrom(graph)
    wrong.graph.output[0].type.tensor_type.shape.dim[2].dim_value = 9
    with pytest.raises(InvalidGraphError, match=r"model.onnx is not valid ONNX: .*\(8\) vs \(9\)"):
        check_graph("model.onnx", wrong)
    graph.graph.node[0].op_type = "Thing"
    with pytest.raises(InvalidGraphError, match="No Op registered for Thing"):
        check_graph("model.onnx", graph)


def test_providers_that_cannot_load_are_not_tried() -> None:
    assert present(["NoSuchProvider"]) == ["CPUExecutionProvider"]
    usable = present(TARGETS["tensorrt"].providers)
    assert usable[-1] == "CPUExecutionProvider"
    assert set(usable) <= set(onnxruntime.get_available_providers())


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["int8", "int4"])
@pytest.mark.parametrize(
    ("preset", "divisor"), [("bert-base", 8), ("gpt2", 8), ("smollm2-135m", 4), ("t5-small", 8)]
)
def test_weights_in_few_bits_are_multiplied_as_floats(
    preset: str, divisor: int, precision: str, tmp_path: Path
) -> None:
    """TensorRT has neither DynamicQuantizeLinear nor MatMulInteger, and of DequantizeLinear no zero points."""
    spec = small(preset, divisor)
    result = written(spec, tmp_path, precision=precision, cache_length=40 if spec.decoder else None)
    for graph in graphs(result).values():
        nodes = graph.graph.node
        operations = {node.op_type for node in nodes}
        assert "DequantizeLinear" in operations
        assert not operations & {"DynamicQuantizeLinear", "MatMulInteger"}
        assert all(len(node.input) == 2 for node in nodes if node.op_type == "DequantizeLinear")
        assert {node.domain for node in nodes} == {""}


def test_zero_points_are_refused() -> None:
    with pytest.raises(
        UserError, match="asymmetric gives weights zero points, which target tensorrt does not"
    ):
        ExportOptions(target="tensorrt", precision="int4", asymmetric=True)
