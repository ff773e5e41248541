"""What each target puts in the place of which function: how many, that it computes the same, and why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from exporters.export import export
from exporters.graph.fusing import functions, group_query_attention
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS
from exporters.verification.result import REDUCED, VerificationError
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, gpt2, llava, t5
from zoo.builder import assemble
from zoo.core.reduced import (
    fewer_experts,
    fewer_layers,
    narrowed,
    short_switch_lengths,
    small_limits,
    small_tables,
)
from zoo.record.records import CacheRecord


def small(preset: str, divisor: int, *assignments: str) -> Model:
    """A preset of few layers, narrow enough for a test and wide enough for the fused operations."""
    return narrowed(
        short_switch_lengths(fewer_experts(small_limits(small_tables(fewer_layers(load(preset, assignments)))))),
        divisor,
    )  # fmt: skip


def written(spec: Model, tmp_path: Path, target: str = "cpu", **options: Any) -> Export:
    return export(spec, tmp_path / "out", ExportOptions(target=target, **options))


def fused(result: Export) -> dict[str, int]:
    """The operations of all graphs that not every target has."""
    counts: dict[str, int] = {}
    for facts in result.graphs.values():
        for name, count in facts["operations"].items():
            counts[name] = counts.get(name, 0) + count
    return counts


@one_in(5)
@pytest.mark.parametrize(
    ("preset", "divisor"),
    [
        ("gpt2", 8),
        ("smollm2-135m", 2),  # grouped heads, rotation inside
        ("qwen3-0.6b", 8),  # queries and keys normed before they are rotated
        ("gemma2-2b", 8),  # windows in every other layer, soft caps
        ("gemma3-1b", 8),  # positions of their own in some layers
        ("gpt-oss-20b", 8),  # sinks, experts
        ("bloom-560m", 4),  # ALiBi
        ("falcon-rw-1b", 8),  # ALiBi by the places of keys
        ("gpt-neo-125m", 4),  # unscaled scores
        ("gpt-j-6b", 8),  # interleaved, partial rotation
        pytest.param(
            "phi-3.5-mini", 2, marks=pytest.mark.slow
        ),  # angles that depend on the length of the input
        ("olmo2-1b", 4),  # norms behind the branches
        ("mixtral-8x7b", 8),
    ],
)
def test_a_decoders_attention_is_one_operation_with_its_cache(
    preset: str, divisor: int, tmp_path: Path
) -> None:
    spec = small(preset, divisor)
    assert spec.decoder is not None
    result = written(spec, tmp_path)
    assert fused(result)["GroupQueryAttention"] == len(spec.decoder.layer_blocks())
    assert result.manifest.cache == CacheRecord(kind="shared", padding="right")
    assert result.verification is not None
    cases = {comparison.case.removeprefix(REDUCED) for comparison in result.verification.comparisons}
    assert {"padded prompt, then steps", "in one buffer"} <= cases


@pytest.mark.parametrize(
    ("preset", "target", "precision"),
    [
        ("qwen3-0.6b", "cuda", "fp16"),
        pytest.param("gemma3-1b", "webgpu", "fp32", marks=pytest.mark.slow),
        pytest.param("qwen3-0.6b", "cuda", "bf16", marks=pytest.mark.slow),
        pytest.param("qwen3-0.6b", "cuda", "int4", marks=pytest.mark.slow),
        pytest.param("exaone-4-1.2b", "webgpu", "int8", marks=pytest.mark.slow),
    ],
)
def test_norms_of_queries_and_keys_have_the_form_that_the_runtime_moves_into_attention(
    preset: str, target: str, precision: str, tmp_path: Path
) -> None:
    """``GroupQueryAttentionPreNormFusion`` of ONNX Runtime: B T HK, B T H K with a known K, the norm, and B T HK."""
    result = export(small(preset, 4), tmp_path / "out", ExportOptions.of(target=target, precision=precision))
    graph = onnx.load(result.directory / "model.onnx", load_external_data=False).graph
    producers = {name: node for node in graph.node for name in node.output}
    described = (*graph.value_info, *graph.input, *graph.output)
    dims = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in described}
    attentions = [node for node in graph.node if node.op_type == "GroupQueryAttention"]
    assert attentions
    for attention in attentions:
        heads = {attribute.name: attribute.i for attribute in attention.attribute}
        for vectors, count in zip(
            attention.input[:2], (heads["num_heads"], heads["kv_num_heads"]), strict=True
        ):
            outer = producers[vectors]
            norm = producers[outer.input[0]]
            inner = producers[norm.input[0]]
            assert [outer.op_type, norm.op_type, inner.op_type] == [
                "Reshape",
                "SimplifiedLayerNormalization",
                "Reshape",
            ]
            assert len(dims[inner.input[0]]) == len(dims[vectors]) == 3
            assert dims[inner.input[0]][-1] == dims[vectors][-1]
            assert dims[inner.output[0]][-1] * count == dims[vectors][-1]


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("heads", [4, 3])
@pytest.mark.parametrize(
    ("position", "attention"),
    [
        ({"kind": "alibi"}, {"sinks": True}),  # what all keys get matters to a sink
        ({"kind": "alibi", "precision": "bfloat16"}, {}),
        ({"kind": "relative_bias", "buckets": 8, "max_distance": 6}, {}),
        ({"kind": "disentangled", "buckets": 4, "max_distance": 6}, {}),
        ({"kind": "rope"}, {"window": 3}),
    ],
)
def test_padding_between_a_prompt_and_its_steps_counts_for_nothing(
    position: dict[str, Any], attention: dict[str, Any], heads: int, target: str, tmp_path: Path
) -> None:
    attention = {**BLOCK["attention"], "heads": heads, "head_dim": 8, **attention}
    decoder = {"layers": 2, "block": {**BLOCK, "attention": attention}}
    result = written(gpt2(position=position, context_length=32, decoder=decoder), tmp_path, target)
    cache = result.manifest.cache
    assert cache is not None
    name = "padded prompt, then steps" if cache.padding == "right" else "padding between prompt and steps"
    assert result.verification is not None
    assert name in {comparison.case.removeprefix(REDUCED) for comparison in result.verification.comparisons}


def test_rotations_inside_the_operation_are_run_in_all_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reduced model whose heads are too narrow for the operation to rotate them would not show a table that ends too soon."""

    def short(
        frequencies: Any, amplitude: float, interleaved: bool, positions: int
    ) -> functions.RotaryTables:
        return functions.RotaryTables(frequencies, amplitude, interleaved, positions // 2)

    decoder = {"layers": 2, "block": {**BLOCK, "attention": {"kind": "multi_head", "heads": 2}}}
    spec = gpt2(d_model=64, position={"kind": "rope"}, context_length=40, decoder=decoder)
    monkeypatch.setattr(group_query_attention, "RotaryTables", short)
    with pytest.raises(VerificationError, match="cos_cache dimension 0 shall not be less"):
        written(spec, tmp_path)


@one_in(4)
@pytest.mark.parametrize(
    ("router", "precision", "from_logits"),
    [
        ({}, "fp32", True),
        ({"scale": 2.5}, "int8", True),
        ({"scores": "sigmoid"}, "fp32", False),
        ({"normalize": False}, "int4", False),
        ({"groups": {"count": 2, "top": 1}}, "fp32", False),
        ({"score_correction_bias": True}, "fp32", False),
    ],
)
def test_logits_choose_and_weight_experts_where_their_softmax_does(
    router: dict[str, Any], precision: str, from_logits: bool, tmp_path: Path
) -> None:
    expert = {"kind": "gated", "hidden": 32, "activation": "silu", "bias": False}
    mixture = {"kind": "mixture", "experts": 4, "top_k": 2, "expert": expert, "router": router}
    spec = gpt2(d_model=32, decoder={"layers": 1, "block": {**BLOCK, "feed_forward": mixture}})
    written(spec, tmp_path, precision=precision)
    graph = onnx.load(tmp_path / "out/model.onnx", load_external_data=False).graph
    operations = [node.op_type for node in graph.node]
    operation, otherwise = ("MoE", "Log") if precision == "fp32" else ("QMoE", "TopK")
    assert operations.count(operation) == 1
    assert (otherwise not in operations) == from_logits


@one_in(2)
@pytest.mark.parametrize("multipliers", ["{}", "{input: 0.5, output: 1.5}"])
def test_queries_keys_and_values_are_one_product(multipliers: str, tmp_path: Path) -> None:
    written(small("gpt2", 8, f"decoder.block.attention.multipliers={multipliers}"), tmp_path)
    graph = onnx.load(tmp_path / "out/model.onnx", load_external_data=False).graph
    names = {tensor.name for tensor in graph.initializer}
    assert "decoder.blocks.0.attention.query_key_value.weight" in names
    assert not any(name.endswith("attention.query.weight") for name in names)
    products = [node.name for node in graph.node if node.op_type == "Gemm"]
    assert len([name for name in products if ".attention/" in name or ".attention." in name]) == 2 * 2


@pytest.mark.slow
def test_attention_beside_a_mixer_is_fused_too(tmp_path: Path) -> None:
    found = fused(written(small("falcon-h1-0.5b", 4), tmp_path))
    assert [found[name] for name in ("GroupQueryAttention", "CausalConvWithState", "LinearAttention")] == [
        2
    ] * 3
    graph = onnx.load(tmp_path / "out/model.onnx", load_external_data=False).graph
    assert "decoder.blocks.0.attention.query_key_value.weight" in {
        tensor.name for tensor in graph.initializer
    }


def test_weights_side_by_side_take_no_more_room(tmp_path: Path) -> None:
    sizes = [
        written(small("smollm2-135m", 4), tmp_path / target, target, verify=False).files["model.onnx.data"]
        for target in ("portable", "cpu")
    ]
    tables = 2 * 4 * small("smollm2-135m", 4).context_length * 8  # type: ignore[operator]
    assert abs(sizes[1] - sizes[0] - tables) < 3 * 4096


def test_operations_without_a_cuda_kernel_stay_unfused(tmp_path: Path) -> None:
    """GroupQueryAttention is for half precision there."""
    result = written(gpt2(), tmp_path, "cuda")
    assert "GroupQueryAttention" not in fused(result)
    assert result.manifest.cache == CacheRecord(kind="growing", padding="either")
    reasons = [reason for facts in result.graphs.values() for reason in facts["unfused"]]
    assert reasons == [
        "GroupQueryAttention: decoder.blocks.0.attention: GroupQueryAttention has no kernel for float32; "
        "another fused operation replaces it, with a growing cache"
    ]


WIDE_HEADS = {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "head_dim": 8}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "options", "reason"),
    [
        (small("deepseek-v2-lite", 8), {}, "keys and values have different widths"),
        (
            llava(decoder={"layers": 1, "block": WIDE_HEADS, "bidirectional": "image"}),
            {},
            "the tokens of an image or of a prompt see each other in both directions",
        ),
        (
            small("gpt2", 8, "decoder.block.attention.head_dim=96"),
            {},
            "the head width is 12, and must be a multiple of 8",
        ),
        (  # "attention_bias is not supported in GroupQueryAttention cuda kernel", says ONNX Runtime
            small("bloom-560m", 4),
            {"target": "cuda", "precision": "fp16"},
            "scores have a positional bias, which GroupQueryAttention does not support on this target",
        ),
    ],
)
def test_an_unsupported_attention_stays_with_the_reason(
    spec: Model, options: dict[str, str], reason: str, tmp_path: Path
) -> None:
    result = written(spec, tmp_path, **options)
    assert "GroupQueryAttention" not in fused(result)
    assert reason in result.graphs["model.onnx"]["unfused"][0]
    assert json.loads((tmp_path / "out/export.json").read_text())["graphs"]["model.onnx"]["unfused"]


@one_in(3)
@pytest.mark.parametrize(("spec", "count"), [(gpt2(), 4), (bert(), 5), (t5(), 10)])
def test_a_residual_and_its_norm_are_one_operation(spec: Model, count: int, tmp_path: Path) -> None:
    counts = fused(written(spec, tmp_path, "cuda"))
    assert sum(counts[name] for name in counts if name.startswith("Skip")) == count


@one_in(2)
@pytest.mark.parametrize(
    ("spec", "operation"), [(small("bert-base", 8), "BiasGelu"), (small("gpt2", 8), "FastGelu")]
)
def test_a_bias_and_its_activation_are_one_operation(spec: Model, operation: str, tmp_path: Path) -> None:
    counts = fused(written(spec, tmp_path, "cuda"))
    assert counts[operation] == 2
    assert "Gelu" not in counts


@one_in(4)
@pytest.mark.parametrize(
    ("preset", "target", "count"),
    [
        ("t5-small", "cpu", 2 + 4),
        ("bart-base", "cpu", 2 + 4),
        ("whisper-tiny", "cpu", 2 + 4),
        ("falcon-rw-1b", "cuda", 2),
    ],
)
def test_attention_with_a_growing_cache_and_that_to_an_encoder_are_one_operation_each(
    preset: str, target: str, count: int, tmp_path: Path
) -> None:
    result = written(small(preset, 8), tmp_path, target)
    assert fused(result)["MultiHeadAttention"] == count
    assert result.manifest.cache == CacheRecord(kind="growing", padding="either")


@pytest.mark.slow
def test_only_the_last_tokens_scores_are_computed(tmp_path: Path) -> None:
    spec = gpt2()
    result = written(spec, tmp_path, logits="last", weights="random")
    assert result.graphs["model.onnx"]["outputs"]["logits"] == ["batch_size", 1, spec.vocab_size]
    every = written(spec, tmp_path / "every", logits="all")
    ids = np.array([[1, 2, 3, 4], [5, 6, 0, 0]])
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    last, full = (
        onnxruntime.InferenceSession(path / "model.onnx", providers=["CPUExecutionProvider"]).run(
            ["logits"], {"input_ids": ids, "attention_mask": mask, **empty_cache(spec)}
        )[0]
        for path in (result.directory, every.directory)
    )
    np.testing.assert_allclose(last[:, 0], full[[0, 1], [3, 1]], atol=1e-5)


@pytest.mark.slow
def test_the_last_token_of_a_row_that_attends_to_nothing_in_half_means_nothing(tmp_path: Path) -> None:
    result = written(t5(), tmp_path, precision="fp16", logits="last")
    assert result.verification is not None
    cases = {comparison.case.removeprefix(REDUCED) for comparison in result.verification.comparisons}
    assert "nothing but padding" in cases


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (gpt2(head={"kind": "replaced_token_detection"}), "decoder, head replaced_token_detection"),
        (gpt2(head={"kind": "classification", "labels": 3, "pooling": "mean"}), "decoder, head classification"),
        (t5(head={"kind": "question_answering"}), "encoder-decoder, head question_answering"),
        (gpt2(head={"kind": "none"}), "decoder, head none"),
        (bert(head={"kind": "masked_language_modeling", "norm": {"kind": "layer_norm"}}), "encoder, head masked"),
    ],
)  # fmt: skip
def test_the_last_tokens_scores_are_refused_where_there_are_none(
    spec: Model, value: str, tmp_path: Path
) -> None:
    with pytest.raises(
        UserError, match=f"needs a decoder whose head scores the vocabulary.*\n  value: {value}"
    ):
        written(spec, tmp_path, logits="last")
    assert not list(tmp_path.iterdir())


def empty_cache(spec: Model) -> dict[str, np.ndarray]:
    model: Any = assemble(spec)
    return {
        f"past_key_values.{layer}.{each.name}": np.zeros(each.shape(2, 0), np.float32)
        for layer, state in enumerate(model.decoder.states)
        for each in state
    }


def test_the_last_token_of_a_model_is_the_last_real_one() -> None:
    spec = gpt2()
    model: Any = assemble(spec).to_empty(device="cpu")
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    ids, mask = torch.randint(9, (2, 5)), torch.tensor([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]])
    with torch.inference_mode():
        every, last = model(ids, mask)["logits"], model(ids, mask, last_only=True)["logits"]
    torch.testing.assert_close(last[:, 0], every[[0, 1], [2, 4]])


def test_the_minimum_runtime_is_that_of_the_newest_operation(tmp_path: Path) -> None:
    facts = written(small("gpt2", 8), tmp_path).graphs["model.onnx"]
    assert facts["minimum_runtime"] == "onnxruntime 1.20.1"
    assert facts["opset"] == 20
