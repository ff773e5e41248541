"""Additional outputs: verified in every precision, target and layout, recorded, and refused where a model does not have them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from exporters.exported.verify_export import verify_export
from exporters.verification.result import REDUCED, VerificationError
from specs.base.errors import UserError
from specs.model.model import Model
from tests.exporters.models import written
from tests.parity.families.as_stated import CONFIGS, spec_of
from tests.thinned import one_in
from tests.zoo.tiny import bert, gpt2, t5, vit
from zoo.layer_outputs.choice import chosen_outputs, of_reduced
from zoo.layer_outputs.recording import with_layer_outputs
from zoo.tracing.task import Task

ALL = ("hidden:all", "attention:all")
PRECISIONS = [
    {"target": target, "precision": precision}
    for target in ("portable", "cpu")
    for precision in ("fp32", "fp16", "bf16", "int8", "int4")
]


def compared(export: Any) -> set[str]:
    """The outputs of the model itself that were compared."""
    return {c.output for c in export.verification.comparisons if not c.case.startswith(REDUCED)}


@one_in(24)
@pytest.mark.parametrize("make", [bert, gpt2])
@pytest.mark.parametrize("options", PRECISIONS)
def test_hidden_states_and_weights_in_every_precision(
    make: Any, options: dict[str, str], tmp_path: Path
) -> None:
    export = written(make(), tmp_path / "x", outputs=ALL, **options)
    names = {"hidden_states.0", "hidden_states.1", "hidden_states.2", "attentions.0", "attentions.1"}
    assert names <= compared(export)
    assert names <= {*export.manifest.graphs["model.onnx"].outputs}
    assert export.manifest.options.outputs == ALL


@pytest.mark.slow
def test_every_graph_has_the_outputs_of_its_stack(tmp_path: Path) -> None:
    export = written(t5(), tmp_path / "x", outputs=("encoder.hidden:1", "decoder.hidden:-1", "cross:0"))
    encoder, decoder = (graph.outputs for graph in export.manifest.graphs.values())
    assert "hidden_states.1" in encoder
    assert "cross_attentions.0" not in encoder
    assert {"hidden_states.2", "cross_attentions.0"} <= {*decoder}
    assert decoder["cross_attentions.0"] == (
        "batch_size",
        2,
        "decoder_sequence_length",
        "encoder_sequence_length",
    )
    assert {"encoder hidden_states.1", "hidden_states.2", "cross_attentions.0"} <= compared(export)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["optimum", "transformers-js"])
def test_layouts_of_an_encoder_decoder(layout: str, tmp_path: Path) -> None:
    outputs = ("encoder.hidden:1", "decoder.hidden:-1", "decoder.attention:0", "cross:0")
    export = written(spec_of(CONFIGS["t5"]), tmp_path / "x", outputs=outputs, layout=layout)
    assert {"encoder hidden_states.1", "attentions.0", "cross_attentions.0"} <= compared(export)


@one_in(6)
@pytest.mark.parametrize(
    ("name", "layout"),
    [("llava", "onnx"), ("llava", "transformers-js"), ("smolvlm", "transformers-js"), ("clip", "onnx")],
)
def test_outputs_of_images(name: str, layout: str, tmp_path: Path) -> None:
    spec = spec_of(CONFIGS[name])
    other = "text" if spec.text else "decoder"
    outputs = ("image.hidden:-2", "image.attention:0", f"{other}.hidden:1")
    export = written(spec, tmp_path / "x", outputs=outputs, layout=layout)
    assert {"image hidden_states.1", "image attentions.0"} <= compared(export)


@one_in(6)
@pytest.mark.parametrize("name", ["qwen3_next", "gpt_oss", "deepseek_v3", "gemma2", "wav2vec2", "deberta-v2"])
def test_other_mixers_and_attentions(name: str, tmp_path: Path) -> None:
    export = written(spec_of(CONFIGS[name]), tmp_path / "x", outputs=ALL, target="cpu")
    assert any(output.startswith("attentions.") for output in compared(export))


@pytest.mark.slow
def test_weights_leave_the_cache_to_grow(tmp_path: Path) -> None:
    """An attention that writes into a shared buffer does not return its weights; hidden states leave it as it is."""
    spec = spec_of({**CONFIGS["llama"], "head_dim": 16})
    hidden = written(spec, tmp_path / "hidden", outputs="hidden:1", target="cpu")
    weights = written(spec, tmp_path / "weights", outputs="attention:0", target="cpu")
    assert hidden.manifest.cache is not None
    assert weights.manifest.cache is not None
    assert (hidden.manifest.cache.kind, weights.manifest.cache.kind) == ("shared", "growing")
    assert "GroupQueryAttention" in hidden.manifest.graphs["model.onnx"].operations
    assert "GroupQueryAttention" not in weights.manifest.graphs["model.onnx"].operations


@pytest.mark.slow
def test_the_vectors_that_the_head_reads_beside_its_own(tmp_path: Path) -> None:
    """A head that pools returns both already."""
    scores = written(gpt2(), tmp_path / "x", outputs=("last_hidden_state", "hidden:-1"))
    assert {"last_hidden_state", "logits"} <= compared(scores)
    ids = np.array([[3, 5, 7]])
    session = onnxruntime.InferenceSession(tmp_path / "x" / "model.onnx")
    empty = {v.name: np.zeros((1, 2, 0, 4), np.float32) for v in session.get_inputs()[2:]}
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), **empty}
    read, last = session.run(["last_hidden_state", "hidden_states.2"], feeds)
    np.testing.assert_array_equal(read, last)
    pooled = bert(head={"kind": "pooled", "pooling": "mean"})
    for place, outputs in (("y", ()), ("z", ("last_hidden_state", "hidden:1"))):
        both = written(pooled, tmp_path / place, outputs=outputs)
        names = ["last_hidden_state", "pooler_output", *(["hidden_states.1"] if outputs else [])]
        assert [*both.manifest.graphs["model.onnx"].outputs] == names
        assert set(names) <= compared(both)


@pytest.mark.slow
def test_an_export_with_additional_outputs_is_verified_again(tmp_path: Path) -> None:
    written(gpt2(), tmp_path / "x", outputs=ALL)
    again = verify_export(tmp_path / "x")
    assert again.passed
    assert again.verification is not None
    assert "attentions.1" in {comparison.output for comparison in again.verification.comparisons}


@one_in(2)
@pytest.mark.parametrize("outputs", ["hidden:0,1", "attention:0,1"])
def test_another_layer_in_its_place_fails(
    outputs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mixed_up(task: Task, outputs: Any) -> Task:
        right = with_layer_outputs(task, outputs)
        first, second = (output.name for output in outputs)

        def call(model: Any, values: Any) -> Any:
            results = {**right.call(model, values)}
            return results | {first: results[second], second: results[first]}

        return replace(right, call=call)

    monkeypatch.setattr("exporters.steps.plan.with_layer_outputs", mixed_up)
    with pytest.raises(VerificationError, match=r"hidden_states|attentions"):
        written(gpt2(), tmp_path / "x", outputs=outputs)
    assert not (tmp_path / "x").exists()


def test_an_output_that_no_graph_returns_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporters.steps.plan.with_layer_outputs", lambda task, outputs: task)
    with pytest.raises(VerificationError, match=r"hidden_states\.1 is in no graph's outputs"):
        written(gpt2(), tmp_path / "x", outputs="hidden:1")


def test_a_reduced_model_has_the_nearest_outputs() -> None:
    full, small = gpt2(decoder={**gpt2().decoder.model_dump(), "layers": 12}), gpt2()
    outputs = chosen_outputs(full, ("hidden:0,5,9,-1", "attention:11"))
    assert [output.name for output in of_reduced(small, outputs)] == [
        "hidden_states.0",
        "hidden_states.1",
        "hidden_states.2",
        "attentions.1",
    ]


def test_numbers_from_the_end_and_repetitions() -> None:
    names = [output.name for output in chosen_outputs(gpt2(), ("hidden:-1,2,-2", "hidden:1", "attention:-1"))]
    assert names == ["hidden_states.2", "hidden_states.1", "attentions.1"]


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (
            gpt2(),
            {"outputs": "hidden:1,9"},
            "outputs must name layers of the decoder of tiny-gpt2: 0 to 2, or -3 to -1\n  value: 9 in hidden:1,9\n"
            "  Use a number in this range; 0 is the input of the first layer, and 2 the last hidden state.",
        ),
        (
            gpt2(),
            {"outputs": "attention:2"},
            "outputs must name layers of the decoder of tiny-gpt2: 0 to 1, or -2 to -1\n  value: 2 in attention:2\n"
            "  Use a number in this range; layers count from 0.",
        ),
        (
            gpt2(),
            {"outputs": "hiden:1"},
            "outputs must be hidden:LAYERS, attention:LAYERS, cross:LAYERS or last_hidden_state\n  value: 'hiden:1'\n"
            "  Use hidden:9,-2 or attention:all, for example, or decoder.hidden:9 if the model has several stacks.",
        ),
        (
            gpt2(),
            {"outputs": "encoder.hidden:1"},
            "outputs names a stack that the model does not have: tiny-gpt2 has decoder\n  value: encoder.hidden:1\n  Use hidden:1.",
        ),
        (
            t5(),
            {"outputs": "hidden:1"},
            "outputs must name a stack: tiny-t5 has encoder and decoder\n  value: hidden:1\n"
            "  Use encoder.hidden:1 or decoder.hidden:1.",
        ),
        (
            gpt2(),
            {"outputs": "cross:0"},
            "outputs cross needs a decoder that attends to an encoder\n"
            "  value: cross:0; tiny-gpt2 is a model of architecture decoder\n  Use attention instead.",
        ),
        (
            spec_of(CONFIGS["mamba"]),
            {"outputs": "attention:all"},
            "outputs names attention weights, which the decoder of tiny does not have\n  value: attention:all\n"
            "  Leave it out, or use hidden for hidden states.",
        ),
        (
            spec_of(CONFIGS["qwen3_next"]),
            {"outputs": "attention:0"},
            "outputs names layer 0, which has no self-attention, of the decoder of tiny\n  value: 0 in attention:0\n  Use 3.",
        ),
        (
            spec_of(CONFIGS["gemma3n_text"]),
            {"outputs": "hidden:1"},
            "outputs hidden needs layers with one residual stream; the layers of tiny have several (altup)\n"
            "  value: hidden:1\n  Use last_hidden_state.",
        ),
        (
            spec_of(CONFIGS["qwen2_vl"]),
            {"outputs": "image.hidden:1"},
            "outputs cannot name the image stack of a model whose images have any size: its graph has patches of all images in one row\n"
            "  value: image.hidden:1\n  Name layers of the decoder.",
        ),
        (
            gpt2(),
            {"outputs": "attention:0", "target": "tensorrt", "precision": "fp16"},
            "outputs attention needs a growing cache: a fixed one has slots without tokens\n"
            "  value: target tensorrt\n  Use target portable or cpu or cuda or webgpu.",
        ),
        (
            gpt2(),
            {"outputs": "attention:0", "target": "cpu", "cache_precision": "int8"},
            "outputs attention cannot be combined with cache_precision: attention with a quantized cache does not return its weights\n"
            "  value: int8\n  Leave one of them out.",
        ),
    ],
)  # fmt: skip
def test_outputs_that_a_model_does_not_have_are_refused(
    model: Model, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as refused:
        written(model, tmp_path / "x", **options)
    assert str(refused.value) == message
    assert not (tmp_path / "x").exists()


def test_an_image_encoder_counts_its_last_state_before_the_norm(tmp_path: Path) -> None:
    spec = vit()
    normed = {output.name: output.normed for output in chosen_outputs(spec, ("hidden:all",))}
    assert not any(normed.values())
    assert [output.normed for output in chosen_outputs(gpt2(), ("hidden:-2,-1",))] == [False, True]
