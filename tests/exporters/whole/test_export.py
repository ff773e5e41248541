"""Whole exports: every variant is written and verified, and the directory says what it is."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from safetensors.torch import save_file
from torch import Tensor

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS
from exporters.verification.result import REDUCED
from exporters.verification.verified_model import choose_model, narrowest_model
from specs.base.errors import UserError
from specs.language.load import load
from specs.language.preset_files import PRESETS
from specs.model.model import Model
from tests.exporters.models import UNVERIFIED, contents, graphs, regions, stored, verified, written
from tests.exporters.whole.test_patch_positions import POSITIONS as PATCH_POSITIONS
from tests.strategies import Data, model_data
from tests.thinned import one_in
from tests.zoo.filled import random_model
from tests.zoo.tiny import BLOCK, bert, gpt2, t5, vit, whisper
from zoo.builder import assemble
from zoo.core.progress import Stage
from zoo.core.tensors import weight_bytes
from zoo.weights.random import RandomWeights
from zoo.weights.source import WeightError

MAKES = [bert, gpt2, t5]
POSITIONS: list[dict[str, Any]] = [
    {"kind": "learned"},
    {"kind": "learned", "offset": 2},
    {"kind": "sinusoidal"},
    {"kind": "sinusoidal", "layout": "half_split", "offset": 2},
    {"kind": "rope"},
    {"kind": "rope", "layout": "interleaved", "dimensions": 2},
    {"kind": "rope", "scaling": {"kind": "linear", "factor": 2.0}},
    {"kind": "rope", "rotates": "input"},
    *[
        {"kind": "rope", "scaling": {**scaling, "original_context_length": border}}
        for border in (3, 8, 16)
        for scaling in (
            {"kind": "dynamic_ntk", "factor": 2.0},
            {"kind": "longrope", "short_factor": [1.0, 1.5], "long_factor": [2.0, 4.0]},
        )
    ],
    {"kind": "alibi"},
    {"kind": "alibi", "scale": 0.3},
    {"kind": "relative_bias", "buckets": 8, "max_distance": 6},
    {"kind": "relative_bias", "buckets": 8, "max_distance": 6, "per_layer": True},
    {"kind": "disentangled", "max_distance": 6},
    {"kind": "disentangled", "buckets": 4, "max_distance": 9, "norm": {"kind": "layer_norm"}},
    {"kind": "none"},
]
CONVOLUTIONAL = {"kind": "convolutional", "kernel": 4, "groups": 2}
BLOCKS: list[dict[str, Any]] = [
    {"kind": "pre_norm"},
    {"kind": "post_norm"},
    {"kind": "parallel", "norms": "shared"},
    {"kind": "parallel", "norms": "separate"},
    {"kind": "reordered_norm"},
    {"kind": "sandwich"},
    {"kind": "sandwich", "attention_norm": {"kind": "rms_norm"}},
    {"kind": "pre_norm", "attention_norm": {"kind": "none"}, "feed_forward_norm": {"kind": "rms_norm"}},
    {"kind": "normed_residual"},
    {"kind": "normed_residual", "residual": {"kind": "add", "scale": 0.5, "stream_scale": 3.5}},
    {"kind": "post_norm", "feed_forward_residual": {"kind": "add", "stream_scale": 2.0}},
    {"kind": "pre_norm", "residual": {"kind": "none"}},
]
NORMS: list[dict[str, Any]] = [
    {"kind": "layer_norm", "eps": 1e-3},
    {"kind": "layer_norm", "bias": False},
    {"kind": "layer_norm", "unit_offset": True},
    {"kind": "layer_norm", "weight": False},
    {"kind": "layer_norm", "weight": False, "bias": False},
    {"kind": "rms_norm", "unit_offset": True},
    {"kind": "rms_norm"},
    {"kind": "batch_norm"},
    {"kind": "none"},
]
ATTENTIONS: list[dict[str, Any]] = [
    {"kind": "multi_head", "heads": 2, "head_dim": 6, "scale": 1.0, "bias": False},
    {"kind": "multi_head", "heads": 2, "bias": {"query": True, "key": False, "value": True, "output": False}},
    {"kind": "grouped_query", "heads": 4, "kv_heads": 2},
    {"kind": "multi_query", "heads": 4},
    {"kind": "multi_head", "heads": 2, "window": 5},
    {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "softcap": 20.0},
    {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "sinks": True},
    {"kind": "multi_head", "heads": 2, "clip": 8.0},
    {"kind": "multi_head", "heads": 2, "position": {"kind": "rope", "theta": 50.0}},
    {"kind": "multi_head", "heads": 2, "position": {"kind": "relative_bias"}},
    *[
        {"kind": "grouped_query", "heads": 2, "kv_heads": 1, "qk_norm": {"norm": norm, "over": over}}
        for over in ("head", "width", "each_head")
        for norm in ({"kind": "layer_norm"}, {"kind": "rms_norm", "unit_offset": True})
    ],
]
LATENT = {"kind": "latent", "heads": 3, "kv_rank": 6, "head_dim": 5, "rope_dim": 4, "value_dim": 7}
ACTIVATIONS = [
    "relu", "relu2", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh", "sigmoid", "identity", "xielu",
]  # fmt: skip
FEED_FORWARDS: list[dict[str, Any]] = [
    *[{"kind": "mlp", "hidden": 12, "activation": activation} for activation in ACTIVATIONS],
    *[{"kind": "gated", "hidden": 12, "activation": name, "bias": False} for name in ("silu", "gelu_tanh")],
    {"kind": "gated", "hidden": 12, "activation": "quick_gelu", "limit": 0.5, "up_offset": 1.0},
    {"kind": "gated", "hidden": 12, "activation": "gelu", "bias": "output"},
    *[
        {"kind": "mixture", "experts": 8, "top_k": 2, "expert": {**expert, "hidden": 6}, **parts}
        for expert, parts in (
            ({"kind": "gated", "activation": "silu", "bias": False}, {}),
            ({"kind": "mlp", "activation": "relu"}, {"router": {"bias": True, "normalize": False}}),
            ({"kind": "gated", "activation": "gelu", "bias": "output"}, {}),
            (
                {"kind": "gated", "activation": "silu"},
                {
                    "shared": {"kind": "mlp", "hidden": 5, "activation": "relu"},
                    "router": {
                        "scores": "sigmoid",
                        "score_correction_bias": True,
                        "groups": {"count": 4, "top": 2, "group_score_top_k": 2},
                        "scale": 2.5,
                    },
                },
            ),
        )
    ],
]
EMBEDDINGS: list[dict[str, Any]] = [
    {"scale": "sqrt_d_model"}, {"token_types": 1}, {"token_types": 3}, {"width": 6}, {"norm": {"kind": "rms_norm"}},
]  # fmt: skip
HEADS: list[dict[str, Any]] = [
    {"kind": "none"},
    {"kind": "language_modeling", "scale": "inverse_sqrt_d_model", "bias": True},
    {"kind": "language_modeling", "tie_embeddings": False},
    {"kind": "masked_language_modeling", "norm": {"kind": "layer_norm"}},
    {"kind": "classification", "labels": 3, "pooling": "mean"},
    {"kind": "classification", "labels": 3, "pooling": "last", "activation": "tanh"},
    {"kind": "classification", "labels": 24, "pooling": {"token": 7}},  # as many labels as tokens in a case
    {"kind": "language_modeling", "softcap": 2.0, "bias": "fixed"},
    {"kind": "language_modeling", "activation": "gelu", "dense_bias": False, "norm": {"kind": "layer_norm"}},
    {"kind": "masked_language_modeling", "norm": {"kind": "layer_norm"}, "dense_bias": False},
    {"kind": "masked_language_modeling", "activation": None, "bias": False},
    {"kind": "classification", "labels": 3, "pooling": "mean", "activation": "gelu", "transform": "tokens"},
    {"kind": "token_classification", "labels": 3},
    {"kind": "token_classification", "labels": 3, "activation": "gelu", "norm": {"kind": "layer_norm"}},
    {"kind": "question_answering"},
    {"kind": "replaced_token_detection", "activation": "gelu", "bias": False},
    {"kind": "multi_vector", "projection": 5, "projection_bias": True},
    {"kind": "multi_vector", "activation": "gelu", "normalize": False},
    {"kind": "sparse", "norm": {"kind": "layer_norm"}},
    {"kind": "sparse", "activation": None, "pooling": "sum", "logarithms": 2},
    {
        "kind": "several",
        "heads": {"dense": {"kind": "pooled", "pooling": "last"}, "sparse": {"kind": "token_weights"}},
    },
    {"kind": "pooled", "pooling": {"token": 7}},
    {"kind": "pooled", "pooling": {"token": 7}, "projection": 5, "output": "text_embeds"},
    {"kind": "pooled", "pooling": "mean", "normalize": True, "output": "sentence_embedding"},
    {"kind": "pooled", "pooling": "last", "activation": "tanh", "projection": 5, "normalize": True},
    {"kind": "pooled", "pooling": "max"},
    {"kind": "pooled", "pooling": "weighted_mean", "normalize": True},
    {"kind": "classification", "labels": 3, "pooling": "mean_sqrt_length"},
]

relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck))


def varied(make: Any, block: dict[str, Any] | None = None, **changes: Any) -> Model:
    """A small model with another block in every stack, and other changes."""
    stacks = make().model_dump()
    for name in ("encoder", "decoder"):
        if stacks[name] and block is not None:
            changes[name] = {"layers": 2, "block": {**BLOCK, **block}}
    return make(**{"context_length": 24, **changes})


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *[("position", {"position": position}) for position in POSITIONS],
    *[("block", {"block": block}) for block in BLOCKS],
    *[("norm", {"block": {"norm": norm}}) for norm in NORMS],
    *[("attention", {"block": {"attention": attention}}) for attention in ATTENTIONS],
    *[("feed_forward", {"block": {"feed_forward": feed_forward}}) for feed_forward in FEED_FORWARDS],
    *[("embedding", {"embedding": embedding, "head": {"kind": "none"}}) for embedding in EMBEDDINGS],
    *[("head", {"head": head}) for head in HEADS],
]


@one_in(102)
@pytest.mark.parametrize(
    ("make", "changes"),
    [(make, changes) for _, changes in VARIANTS for make in MAKES],
    ids=[f"{axis}-{make.__name__}" for axis, _ in VARIANTS for make in MAKES],
)
def test_every_variant_of_every_architecture_is_verified(
    make: Any, changes: dict[str, Any], tmp_path: Path
) -> None:
    verified(varied(make, **changes), tmp_path / "x")


@pytest.mark.slow
@pytest.mark.parametrize("border", [3, 400])
@pytest.mark.parametrize(
    "scaling",
    [
        {"kind": "dynamic_ntk", "factor": 2.0},
        {"kind": "longrope", "short_factor": [1.0, 1.5], "long_factor": [2.0, 4.0]},
    ],
)
def test_rotations_by_length_of_an_image_and_of_a_sound_are_fixed(
    scaling: dict[str, Any], border: int, tmp_path: Path
) -> None:
    scaling = {**scaling, "original_context_length": border}
    position = {"kind": "rope", "dimensions": 4, "scaling": scaling}
    sound = whisper()
    for name, spec in {
        "image": vit(position=position),
        "sound": whisper(encoder={**sound.encoder.model_dump(), "position": position}),
    }.items():
        verified(spec, tmp_path / name)
        operations = {node.op for node in next(iter(graphs(spec).values())).nodes}
        assert not operations & {"ReduceMax", "Pow"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["convolutional", "stacked_convolutional"])
def test_convolutional_positions_belong_to_an_encoder_of_any_input_and_of_a_pair(
    kind: str, tmp_path: Path
) -> None:
    position = {**CONVOLUTIONAL, "kind": kind}
    reader = {"layers": 1, "block": BLOCK, "position": position}
    specs = {"image": vit(position=position), "text": bert(position=position), "pair": t5(encoder=reader)}
    for name, spec in specs.items():
        verified(spec, tmp_path / name)


def test_values_that_a_decoder_reads_may_be_wider_than_keys_in_one_operation(tmp_path: Path) -> None:
    """The operation takes keys and values that are the graph's inputs by heads, where both must be of one width."""
    attention = {"kind": "multi_head", "heads": 2, "value_dim": 24}
    spec = t5(decoder={"layers": 1, "block": {**BLOCK, "attention": attention}})
    verified(spec, tmp_path / "x", target="cpu")


LAYERS: list[Any] = [
    [{"repeat": 3, "shared": True}],
    [{"pattern": [{}, {"use": "local"}], "repeat": 2, "shared": True}],
    [{}, {"use": "local"}, {}],
]


@one_in(12)
@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("make", MAKES)
def test_stacks_of_shared_and_of_different_layers_are_verified(
    make: Any, layers: Any, tmp_path: Path
) -> None:
    local = {"attention": {**BLOCK["attention"], "window": 4, "position": {"kind": "alibi"}}}
    used = {"blocks": {"local": {**BLOCK, **local}}} if "local" in str(layers) else {}
    stack = {"layers": layers, "block": BLOCK, **used}
    spec = make()
    data = {name: stack for name, _ in spec.stacks()}
    verified(make(context_length=24, position={"kind": "rope"}, **data), tmp_path / "x")


def test_a_causal_encoder_is_verified(tmp_path: Path) -> None:
    spec = bert(encoder={"layers": 2, "block": BLOCK, "causal": True})
    verified(spec, tmp_path / "x")


def test_a_shared_layer_is_stored_once(tmp_path: Path) -> None:
    spec = gpt2(decoder={"layers": [{"repeat": 5, "shared": True}], "block": BLOCK})
    written(spec, tmp_path / "x")
    names = regions(tmp_path / "x" / "model.onnx")
    assert {name.split(".")[2] for name in names if ".blocks." in name} == {"0"}
    wiring = narrowest_model(spec).spec.decoder
    assert wiring is not None
    assert wiring.owners() == [0, 0]


def test_masks_are_written_once_for_all_layers_with_the_same_view(tmp_path: Path) -> None:
    local = {**BLOCK, "attention": {**BLOCK["attention"], "window": 4}}
    layers = [{"pattern": [{}, {"use": "local"}], "repeat": 3}]
    spec = gpt2(decoder={"layers": layers, "block": BLOCK, "blocks": {"local": local}})
    (graph,) = graphs(spec).values()
    assert sum(node.op == "Where" for node in graph.nodes) == 2


OF_PRESETS = frozenset(
    {
        "affine", "bottleneck", "conformer", "interpolated", "relative_boxes", "relative_key",
        "relative_sinusoidal", "side_by_side", "side_transformer", "stacked_convolutional", "two_streams",
    }
)  # fmt: skip
"""Kinds that belong to models of their own, whose presets are exported in reduced form (``test_every_preset.py``)."""


def test_the_variants_and_presets_name_every_kind_there_is() -> None:
    from specs.base.registry import kinds

    positions = [*POSITIONS, CONVOLUTIONAL, *PATCH_POSITIONS.values()]
    text = json.dumps([*positions, *BLOCKS, *NORMS, *ATTENTIONS, LATENT, *FEED_FORWARDS, *HEADS])
    for slot in ("position", "block", "norm", "attention", "feed_forward"):
        assert all(f'"{kind}"' in text for kind in kinds(slot) if kind not in OF_PRESETS)
    presets = "".join(path.read_text(encoding="utf-8") for path in PRESETS.glob("*.yaml"))
    assert all(f"kind: {kind}" in presets for kind in OF_PRESETS)


@pytest.mark.slow
@pytest.mark.parametrize("position", [{"kind": "rope", "layout": "interleaved"}, {"kind": "alibi"}])
@pytest.mark.parametrize("rank", [None, 5])
def test_latent_attention(rank: int | None, position: dict[str, Any], tmp_path: Path) -> None:
    block = {**BLOCK, "attention": {**LATENT, "query_rank": rank, "bias": rank is None}}
    for name, spec in {
        "decoder": gpt2(position=position, decoder={"layers": 2, "block": block}),
        "encoder": bert(position=position, encoder={"layers": 2, "block": block}),
        "both": t5(
            position=position,
            encoder={"layers": 2, "block": block},
            decoder={"layers": 2, "block": {**block, "cross_attention": {"kind": "multi_head", "heads": 2}}},
        ),
    }.items():
        result = written(spec, tmp_path / name)
        assert result.verification
        assert result.verification.passed
    caches = written(
        gpt2(decoder={"layers": 1, "block": block}), tmp_path / "y", **UNVERIFIED.__dict__
    ).graphs
    inputs = caches["model.onnx"]["inputs"]
    assert inputs["past_key_values.0.key"] == ["batch_size", 3, "past_sequence_length", 9]
    assert inputs["past_key_values.0.value"] == ["batch_size", 3, "past_sequence_length", 7]


@one_in(6)
@pytest.mark.parametrize("heads", [1, 3])
def test_cross_attention_may_differ_from_self_attention(heads: int, tmp_path: Path) -> None:
    cross = {"kind": "multi_head", "heads": heads, "head_dim": 6}
    spec = t5(decoder={"layers": 2, "block": {**BLOCK, "cross_attention": cross}})
    assert written(spec, tmp_path / "x").verification


def test_named_blocks_in_a_pattern(tmp_path: Path) -> None:
    rms = {**BLOCK, "kind": "sandwich", "norm": {"kind": "rms_norm"}}
    layers = [{"pattern": [{"repeat": 1}, {"use": "other"}], "repeat": 2}]
    spec = gpt2(decoder={"layers": layers, "block": BLOCK, "blocks": {"other": rms}})
    assert written(spec, tmp_path / "x").verification


def _exported_and_verified(data: Data, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    verified(Model.model_validate(data), directory)


@pytest.mark.slow
@settings(relaxed, max_examples=30)
@given(data=model_data())
def test_every_drawn_spec_is_exported_and_verified(data: Data, tmp_path_factory: Any) -> None:
    _exported_and_verified(data, tmp_path_factory.getbasetemp() / "drawn")


# ------------------------------------------------------------------------------------------------ the directory


@pytest.mark.parametrize("make", MAKES)
def test_a_directory_may_move(make: Any, tmp_path: Path) -> None:
    result = written(make(), tmp_path / "x", verify=False)
    shutil.move(tmp_path / "x", tmp_path / "moved")
    for name in result.graphs:
        session = onnxruntime.InferenceSession(tmp_path / "moved" / name, providers=["CPUExecutionProvider"])
        assert [value.name for value in session.get_inputs()] == list(result.graphs[name]["inputs"])


@one_in(3)
@pytest.mark.parametrize("make", MAKES)
def test_files_record_their_origin(make: Any, tmp_path: Path) -> None:
    spec = make()
    result = written(spec, tmp_path / "x", seed=7)
    for name in result.graphs:
        model = onnx.load(tmp_path / "x" / name, load_external_data=False)
        recorded = {entry.key: entry.value for entry in model.metadata_props}
        assert Model.model_validate(json.loads(recorded["zoo.spec"])) == spec
        assert (recorded["zoo.target"], recorded["zoo.core.precision"]) == ("portable", "fp32")
        assert recorded["zoo.weights"] == "random, seed 7"
        assert recorded["zoo.torch"] == torch.__version__ or torch.__version__.startswith(
            recorded["zoo.torch"]
        )
        assert model.producer_name == "zoo"
    assert load(str(tmp_path / "x" / "spec.yaml")) == spec


def test_the_manifest_records_files_and_verification(tmp_path: Path) -> None:
    result = written(gpt2(), tmp_path / "x")
    content = (tmp_path / "x" / "export.json").read_bytes()
    manifest, build = json.loads(content), json.loads((tmp_path / "x" / "build.json").read_text())
    assert build["export"] == hashlib.sha256(content).hexdigest()
    assert {
        **manifest,
        **{key: build[key] for key in ("weights_from", "verification", "quality")},
    } == json.loads(json.dumps(result.as_dict()))
    others = {
        path.name: {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in (tmp_path / "x").iterdir()
        if path.name not in ("export.json", "build.json", "probe.npz", "README.md")
    }
    assert manifest["files"] == others
    assert (manifest["weights"], manifest["seed"], build["weights_from"]) == ("random", 0, "random, seed 0")
    assert build["verification"]["passed"] is True
    assert build["verification"]["subject"] == "the model itself, and a reduced model with probing weights"
    cases = [comparison["case"] for comparison in build["verification"]["comparisons"]]
    assert cases[0] == "padded prompt, then steps"
    assert {case.removeprefix(REDUCED) for case in cases if case.startswith(REDUCED)} >= {
        "one token", "padding left", "nothing but padding", "prompt, then steps", "prompt in pieces",
    }  # fmt: skip
    assert manifest["graphs"]["model.onnx"]["nodes"] == len(
        onnx.load(tmp_path / "x" / "model.onnx").graph.node
    )


def test_without_verification_nothing_claims_it(tmp_path: Path) -> None:
    result = written(gpt2(), tmp_path / "x", verify=False)
    assert result.verification is None
    assert json.loads((tmp_path / "x" / "build.json").read_text())["verification"] is None


def test_no_metadata_names_a_place_on_this_machine(tmp_path: Path) -> None:
    written(gpt2(), tmp_path / "x")
    for content in contents(tmp_path / "x").values():
        assert str(tmp_path).encode() not in content


def test_progress_names_the_steps_and_counts_the_bytes(tmp_path: Path) -> None:
    stages: list[Stage] = []
    export(gpt2(), tmp_path / "x", progress=stages.append)
    names = [stage.name for stage in stages]
    assert names[0] == "check the module"
    assert any(name.startswith("verify: padding left") for name in names)
    weights = [stage for stage in stages if stage.name == "write weights"]
    own = [
        stage.done for stage in weights if stage.total == weights[0].total
    ]  # the reduced model's come after
    assert own == sorted(own)
    assert own[-1] == weights[0].total


# --------------------------------------------------------------------------------------------------- the weights


@one_in(2)
@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("verify", [True, False])
def test_the_graph_alone_has_no_data_file(make: Any, verify: bool, tmp_path: Path) -> None:
    result = written(make(), tmp_path / "x", weights="none", verify=verify)
    names = {path.name for path in (tmp_path / "x").iterdir()}
    assert names == {*result.graphs, "build.json", "export.json", "spec.yaml", "README.md"}
    assert (result.manifest.weights, result.build.weights_from) == ("none", "none: the graph alone")
    if verify:
        assert result.verification is not None
        assert result.verification.subject.startswith("the model with random weights, and ")


def test_the_graph_alone_is_the_graph_with_weights(tmp_path: Path) -> None:
    written(gpt2(), tmp_path / "with", verify=False)
    written(gpt2(), tmp_path / "without", weights="none", verify=False)
    one, two = (
        onnx.load(tmp_path / name / "model.onnx", load_external_data=False).graph
        for name in ("with", "without")
    )
    assert one == two
    shutil.copy(tmp_path / "with" / "model.onnx.data", tmp_path / "without")
    onnxruntime.InferenceSession(tmp_path / "without" / "model.onnx", providers=["CPUExecutionProvider"])


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        written(gpt2(), tmp_path / name, seed=seed, verify=False)
    a, b, c = (contents(tmp_path / name) for name in "abc")
    assert a == b
    assert a["model.onnx.data"] != c["model.onnx.data"]
    assert onnx.load(tmp_path / "a" / "model.onnx", load_external_data=False).graph == onnx.load(
        tmp_path / "c" / "model.onnx", load_external_data=False
    ).graph  # fmt: skip


@pytest.mark.slow
def test_verifying_changes_no_byte_of_the_weights(tmp_path: Path) -> None:
    written(t5(), tmp_path / "a")
    written(t5(), tmp_path / "b", verify=False)
    a, b = (contents(tmp_path / name) for name in "ab")
    assert a["model.onnx.data"] == b["model.onnx.data"]


@pytest.mark.parametrize("make", MAKES)
def test_the_file_holds_the_weights_that_pytorch_gets(make: Any, tmp_path: Path) -> None:
    spec = make()
    result = written(spec, tmp_path / "x", seed=5, verify=False)
    model = random_model(spec, 5)
    parameters = dict(model.named_parameters())
    files: dict[str, Tensor] = {}
    for name in result.graphs:
        files |= stored(tmp_path / "x", name)
    assert files.keys() == parameters.keys()
    for name, values in files.items():
        assert torch.equal(values, parameters[name].detach().reshape(-1)), name


def checkpoint(spec: Model, path: Path, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """A checkpoint of a spec by our names, none of them at its default."""
    generator = torch.Generator().manual_seed(1)
    tensors = {
        name: torch.randn(parameter.shape, generator=generator).mul(0.3).to(dtype)
        for name, parameter in assemble(spec).named_parameters()
    }
    save_file(tensors, path)
    return tensors


@one_in(3)
@pytest.mark.parametrize("make", MAKES)
def test_weights_of_a_checkpoint_are_copied_byte_for_byte(make: Any, tmp_path: Path) -> None:
    spec = make()
    tensors = checkpoint(spec, tmp_path / "w.safetensors")
    result = verified(spec, tmp_path / "x", weights=str(tmp_path / "w.safetensors"))
    files: dict[str, Tensor] = {}
    for name in result.graphs:
        files |= stored(tmp_path / "x", name)
    assert {name: values.numpy().tobytes() for name, values in files.items()} == {
        name: tensor.numpy().tobytes() for name, tensor in tensors.items()
    }
    assert "w.safetensors" in result.build.weights_from


@one_in(3)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_another_precision_are_converted(dtype: torch.dtype, tmp_path: Path) -> None:
    tensors = checkpoint(gpt2(), tmp_path / "w.safetensors", dtype)
    verified(gpt2(), tmp_path / "x", weights=str(tmp_path / "w.safetensors"))
    for name, values in stored(tmp_path / "x").items():
        assert torch.equal(values, tensors[name].float().reshape(-1)), name


def test_a_checkpoint_is_copied_where_the_kernel_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = checkpoint(gpt2(), tmp_path / "w.safetensors")
    calls = []

    def across(*args: Any) -> int:
        calls.append(args)
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.copy_file_range", across)
    written(gpt2(), tmp_path / "x", weights=str(tmp_path / "w.safetensors"), verify=False)
    assert calls
    for name, values in stored(tmp_path / "x").items():
        assert torch.equal(values, tensors[name].reshape(-1)), name


@pytest.mark.parametrize(
    ("harm", "message"), [("removed", "cannot be read"), ("cut", "became shorter while it was read")]
)
def test_a_checkpoint_that_goes_away_meanwhile_is_named(harm: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    checkpoint(gpt2(), path)

    def progress(stage: Stage) -> None:
        if stage.name == "trace" and harm == "removed":
            path.unlink()
        elif stage.name == "trace":
            path.write_bytes(path.read_bytes()[:2000])

    with pytest.raises(WeightError, match=message) as error:
        export(gpt2(), tmp_path / "x", ExportOptions(weights=str(path), verify=False), progress)
    assert str(path) in str(error.value)
    assert not (tmp_path / "x").exists()


# ------------------------------------------------------------------------------------------ what is verified


def test_a_model_too_large_is_verified_on_a_reduced_model_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = varied(gpt2, vocab_size=2000, decoder={"layers": 9, "block": BLOCK})
    size = sum(parameter.nbytes for parameter in assemble(spec).parameters())
    monkeypatch.setattr(
        "exporters.verification.verified_model.available_memory", lambda: 300_000_000 + 3 * size - 1
    )
    result = verified(spec, tmp_path / "x")
    assert result.verification.subject.startswith(
        "a reduced model of 2 of 9 decoder layers, with random weights, and "
    )
    assert {path.name for path in tmp_path.iterdir()} == {"x"}
    assert regions(tmp_path / "x" / "model.onnx").keys() == dict(assemble(spec).named_parameters()).keys()


SMALL_TABLES = "a reduced model of 2 of 9 decoder layers with a vocabulary of 1,024"


@pytest.mark.parametrize(
    ("spare", "description"),
    [
        (350_000, "a reduced model of 2 of 9 decoder layers, with random weights"),
        (220_000, f"{SMALL_TABLES}, with random weights"),
        (100_000, f"{SMALL_TABLES}, at 1/2 of the widths, with random weights"),
    ],
)
def test_ever_smaller_reduced_models_stand_in(
    spare: int, description: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = varied(gpt2, vocab_size=2000, d_model=32, decoder={"layers": 9, "block": BLOCK})
    model = assemble(spec)
    source = RandomWeights(model, spec)
    monkeypatch.setattr(
        "exporters.verification.verified_model.available_memory", lambda: 300_000_000 + 3 * spare
    )
    subject = choose_model(spec, lambda held: weight_bytes(assemble(held)), source)
    assert subject.is_reduced
    assert subject.description == description


def test_memory_shortage_is_reported_with_the_free_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exporters.verification.verified_model.available_memory", lambda: 300_001_000)
    with pytest.raises(
        UserError, match=r"Verification, on .*, needs .* of memory, and 1\.0 kB are free"
    ) as error:
        written(gpt2(), tmp_path / "x")
    assert "or export with verify=False" in str(error.value)
    assert not list(tmp_path.iterdir())


@settings(relaxed, max_examples=15)
@given(model_data())
def test_the_probing_reduced_model_is_small_and_of_the_same_architecture(data: Data) -> None:
    spec = Model.model_validate(data)
    subject = narrowest_model(spec)
    assert subject.spec.architecture == spec.architecture
    assert sum(p.numel() for p in assemble(subject.spec).parameters()) <= sum(
        p.numel() for p in assemble(spec).parameters()
    )


@pytest.mark.parametrize("preset", ["bert-base", "llama-2-7b", "t5-11b", "gpt3-175b"])
def test_the_probing_reduced_model_of_a_large_model_takes_no_memory_to_speak_of(preset: str) -> None:
    small = assemble(narrowest_model(load(preset)).spec)
    assert sum(parameter.nbytes for parameter in small.parameters()) < 500_000_000


def test_via_torch_needs_weights(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="via torch needs weights\n  Pass weights random or a path"):
        written(gpt2(), tmp_path / "x", weights="none", via="torch")


def test_weights_that_are_not_there_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(WeightError, match="'nowhere' has no weights"):
        written(gpt2(), tmp_path / "x", weights="nowhere")
    assert not list(tmp_path.iterdir())


def test_a_clients_loop_generates_pytorchs_tokens(tmp_path: Path) -> None:
    spec = gpt2(context_length=32, initialization={"kind": "xavier_uniform"})
    written(spec, tmp_path / "x", verify=False)
    session = onnxruntime.InferenceSession(tmp_path / "x" / "model.onnx", providers=["CPUExecutionProvider"])
    cache = {
        v.name: np.zeros((1, 2, 0, 4), np.float32) for v in session.get_inputs() if v.name.startswith("past")
    }
    token, tokens = [[5, 3, 8]], [5, 3, 8]
    for _ in range(6):
        mask = np.ones((1, len(tokens)), np.int64)
        logits, *present = session.run(None, {"input_ids": np.array(token), "attention_mask": mask, **cache})
        cache = dict(zip(cache, present, strict=True))
        tokens.append(int(logits[0, -1].argmax()))
        token = [[tokens[-1]]]
    model = random_model(spec)
    expected = [5, 3, 8]
    for _ in range(6):
        with torch.no_grad():
            expected.append(int(model(torch.tensor([expected])).logits[0, -1].argmax()))
    assert tokens == expected


def test_targets_run_where_they_say(tmp_path: Path) -> None:
    assert written(gpt2(), tmp_path / "x", target="portable").manifest.target == "portable"
    assert TARGETS["portable"].providers == ("CPUExecutionProvider",)


STREAMING = """
import resource, sys, threading
from pathlib import Path
import onnx_ir, torch, onnxruntime
import exporters.export, zoo.components
from exporters.export import export
from exporters.verification.module_checks import BehaviourError
from exporters.steps.options import ExportOptions
from tests.zoo.tiny import gpt2
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
export(gpt2(vocab_size=800_000, d_model=128), Path(sys.argv[1]), ExportOptions(verify=False))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.slow
def test_writing_weights_holds_only_a_piece_of_them(tmp_path: Path) -> None:
    run = [sys.executable, "-c", STREAMING, str(tmp_path / "x")]
    grown = int(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    assert (tmp_path / "x" / "model.onnx.data").stat().st_size > 400_000_000
    assert grown < 200_000_000


@pytest.mark.slow
def test_copying_a_checkpoint_holds_only_a_piece_of_it(tmp_path: Path) -> None:
    spec = gpt2(vocab_size=800_000, d_model=128)
    checkpoint(spec, tmp_path / "w.safetensors")
    code = STREAMING.replace(
        "ExportOptions(verify=False)", "ExportOptions(verify=False, weights=sys.argv[2])"
    )
    run = [sys.executable, "-c", code, str(tmp_path / "x"), str(tmp_path / "w.safetensors")]
    grown = int(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    assert grown < 200_000_000


def test_default_options_verify() -> None:
    assert ExportOptions().verify
    assert not UNVERIFIED.verify
