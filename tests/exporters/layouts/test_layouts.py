"""Layouts: each directory has the files, names and settings of its client, and what a client cannot load is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from exporters.export import export
from exporters.exported.model_source import ModelSource
from exporters.graph.precisions import PRECISIONS
from exporters.layouts import LAYOUTS, Deployment, LayoutError, check_layout
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS
from exporters.verification.result import VerificationError
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.models import contents, written
from tests.exporters.reduced_presets import structure
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, NORM, bert, gpt2, t5, vit, whisper
from zoo import import_checkpoint
from zoo.builder import assemble
from zoo.tracing import encoder_decoder_tasks, tasks
from zoo.tracing.task import Task

OURS = {"spec.yaml", "build.json", "export.json", "probe.npz", "README.md"}
SPLIT = {"encoder_model.onnx", "decoder_model.onnx", "decoder_with_past_model.onnx"}
MERGED = {"onnx/encoder_model.onnx", "onnx/decoder_model_merged.onnx"}
LATENT = {"kind": "latent", "heads": 2, "kv_rank": 6, "head_dim": 4, "rope_dim": 2, "value_dim": 4}


def deployed(spec: Model, directory: Path, layout: str, **options: Any) -> Path:
    """The export of a spec in a layout."""
    export(spec, directory, ExportOptions(layout=layout, **options))
    return directory


def files(directory: Path) -> set[str]:
    """What a directory holds, but for what is in every layout."""
    return set(contents(directory)) - OURS


NEXT_TOKEN = {"kind": "next_token", "norm": NORM, "hidden_norm": NORM}


def deployment(spec: Model, target: str = "portable", precision: str = "fp32") -> Deployment:
    """What a client is asked to load."""
    return Deployment(assemble(spec), spec, TARGETS[target], PRECISIONS[precision], "random")


def read(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_text())


def names(values: Any) -> list[str]:
    """The names of a graph's inputs or outputs."""
    return [value.name for value in values]


def caches(prefix: str, *parts: str) -> list[str]:
    """The names of the caches of two layers, layer by layer."""
    return [f"{prefix}.{i}.{part}{name}" for i in (0, 1) for part in parts for name in ("key", "value")]


def llama(**attention: Any) -> Model:
    """A Llama of two layers, with four heads and two of keys and values."""
    grouped = {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "bias": False, **attention}
    gated = {"kind": "gated", "hidden": 12, "activation": "silu", "bias": False}
    block = {**BLOCK, "norm": {"kind": "rms_norm"}, "attention": grouped, "feed_forward": gated}
    return gpt2(d_model=64, position={"kind": "rope"}, decoder={"layers": 2, "block": block})


def wide_t5() -> Model:
    """A T5 whose matrices are wide enough to have blocks."""
    attention = {"kind": "multi_head", "heads": 2, "bias": False, "scale": 1.0}
    feed_forward = {"kind": "mlp", "hidden": 64, "activation": "relu", "bias": False}
    block = {**BLOCK, "norm": {"kind": "rms_norm"}, "attention": attention, "feed_forward": feed_forward}
    stack = {"layers": 2, "block": block}
    return t5(d_model=64, encoder=stack, decoder=stack)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 with special tokens, settings for generation, and the files of a tokenizer."""
    directory = tmp_path_factory.mktemp("gpt2")
    sizes = {"vocab_size": 20, "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 16}
    config = transformers.GPT2Config(**sizes, bos_token_id=3, eos_token_id=4, pad_token_id=5)
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(config).save_pretrained(directory)
    generation = {"eos_token_id": [4, 6], "do_sample": True, "temperature": 0.7, "top_k": 9}
    (directory / "generation_config.json").write_text(json.dumps(generation))
    (directory / "tokenizer.json").write_text('{"version": "1.0"}')
    (directory / "tokenizer_config.json").write_text('{"tokenizer_class": "TokenizersBackend", "a": 1}')
    return directory


# ------------------------------------------------------------------------------------------ what a directory holds


def test_an_encoder(tmp_path: Path) -> None:
    spec = bert(head={"kind": "pooler"})
    assert files(deployed(spec, tmp_path / "onnx", "onnx")) == {"model.onnx", "model.onnx.data"}
    optimum = deployed(spec, tmp_path / "optimum", "optimum")
    assert files(optimum) == {"model.onnx", "model.onnx_data", "config.json"}
    assert read(optimum / "config.json")["architectures"] == ["BertModel"]
    js = deployed(spec, tmp_path / "js", "transformers-js")
    assert files(js) == {"onnx/model.onnx", "onnx/model.onnx_data", "config.json"}
    client = read(js / "config.json")["transformers.js_config"]
    assert client == {"dtype": "fp32", "use_external_data_format": True}


@pytest.mark.parametrize("layout", ["optimum", "transformers-js"])
def test_a_sentence_encoder(layout: str, tmp_path: Path) -> None:
    head = {"kind": "pooled", "pooling": "mean", "normalize": True, "output": "sentence_embedding"}
    directory = deployed(bert(head=head), tmp_path / "x", layout)
    graph = onnx.load(directory / LAYOUTS[layout].graph_path("model"), load_external_data=False).graph
    assert names(graph.output) == [
        "last_hidden_state",
        "sentence_embedding",
    ]  # clients pool the first themselves
    assert read(directory / "config.json")["architectures"] == ["BertModel"]
    assert [module["path"] for module in read(directory / "modules.json")] == ["", "1_Pooling", "2_Normalize"]
    assert read(directory / "1_Pooling" / "config.json")["pooling_mode_mean_tokens"] is True


def test_modules_whose_weights_no_layout_holds_are_left_out(tmp_path: Path) -> None:
    spec = bert(head={"kind": "pooled", "pooling": "mean", "projection": 5, "output": "sentence_embedding"})
    assert files(deployed(spec, tmp_path / "x", "optimum")) == {
        "model.onnx",
        "model.onnx_data",
        "config.json",
    }


def test_a_decoder_has_one_graph_in_every_layout(tmp_path: Path) -> None:
    graphs = []
    for layout in LAYOUTS.values():
        directory = deployed(gpt2(), tmp_path / layout.name, layout.name)
        graph = onnx.load(directory / layout.graph_path("model"), load_external_data=False).graph
        graphs.append((names(graph.input), names(graph.output), [node.op_type for node in graph.node]))
        assert read(directory / "export.json")["layout"] == layout.name
    assert all(graph == graphs[0] for graph in graphs)


@pytest.mark.slow
def test_optimum_has_a_graph_for_the_first_step_and_one_for_the_others(tmp_path: Path) -> None:
    directory = deployed(t5(), tmp_path / "x", "optimum")
    assert files(directory) == {*SPLIT, "model.onnx_data", "config.json"}
    encoder, first, other = (
        onnx.load(directory / f"{name}.onnx", load_external_data=False).graph
        for name in ("encoder_model", "decoder_model", "decoder_with_past_model")
    )
    assert names(encoder.output) == ["last_hidden_state"]
    assert names(first.input) == ["input_ids", "encoder_hidden_states", "encoder_attention_mask"]
    assert names(first.output) == ["logits", *caches("present", "decoder."), *caches("present", "encoder.")]
    past = caches("past_key_values", "decoder.", "encoder.")  # taken by their order
    assert names(other.input) == ["input_ids", "encoder_attention_mask", *past]
    assert names(other.output) == ["logits", *caches("present", "decoder.")]
    projections = [any("cross_attention.key" in name for name in names(graph.initializer))
                   for graph in (encoder, first, other)]  # fmt: skip
    assert projections == [False, True, False]  # once per sequence


@pytest.mark.slow
def test_optimum_has_one_graph_of_two_encoders(tmp_path: Path) -> None:
    directory = deployed(structure("clip-vit-b32"), tmp_path / "x", "optimum")
    assert files(directory) == {"model.onnx", "model.onnx_data", "config.json"}
    graph = onnx.load(directory / "model.onnx", load_external_data=False).graph
    assert names(graph.input) == ["input_ids", "attention_mask", "pixel_values"]
    assert {"logits_per_text", "logits_per_image", "text_embeds", "image_embeds"} == {*names(graph.output)}
    usage = (directory / "README.md").read_text("utf-8")
    assert "model = ORTModelForZeroShotImageClassification.from_pretrained" in usage
    assert 'inputs["pixel_values"] = torch.zeros(1, 3, 96, 96)' in usage


def test_optimum_reads_boxes_by_the_class_of_custom_tasks(tmp_path: Path) -> None:
    """Its other classes warn that they know no such input, and fail."""
    directory = deployed(structure("layoutlm-base"), tmp_path / "x", "optimum")
    usage = (directory / "README.md").read_text("utf-8")
    assert 'model = ORTModelForCustomTasks.from_pretrained(".")' in usage
    shape = '*inputs["input_ids"].shape'
    for name, axes in {"token_type_ids": shape, "bbox": f"{shape}, 4"}.items():
        assert f'inputs.setdefault("{name}", torch.zeros({axes}, dtype=torch.int64))' in usage


@one_in(2)
@pytest.mark.parametrize("spec", [t5(), whisper()], ids=lambda spec: spec.name)
def test_transformers_js_has_one_decoder_and_one_file_of_weights_under_two_names(
    spec: Model, tmp_path: Path
) -> None:
    directory = deployed(spec, tmp_path / "x", "transformers-js")
    assert files(directory) == {*MERGED, *(f"{name}_data" for name in MERGED), "config.json"}
    first, second = ((directory / f"{name}_data").stat() for name in sorted(MERGED))
    assert first.st_ino == second.st_ino
    for name in MERGED:
        graph = onnx.load(directory / name, load_external_data=False).graph
        assert not any(node.op_type == "If" for node in graph.node)
        places = {
            entry.value for t in graph.initializer for entry in t.external_data if entry.key == "location"
        }
        assert places == {f"{Path(name).name}_data"}
    moved = shutil.copytree(directory, tmp_path / "moved")
    decoder = onnxruntime.InferenceSession(moved / "onnx" / "decoder_model_merged.onnx")
    shapes = {given.name: given.shape for given in decoder.get_inputs()}
    assert shapes["past_key_values.0.encoder.key"][2] == "past_encoder_sequence_length"


@one_in(2)
@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_transformers_js_caches_nothing_of_the_images_of_gpt2(target: str, tmp_path: Path) -> None:
    spec = load(
        "vit-gpt2",
        [
            *("vocab_size=40", "d_model=12", "context_length=20", "encoder.layers=1", "decoder.layers=2"),
            *("encoder.embedding.image_size=8", "encoder.embedding.patch_size=4", "expect={}"),
            *(f"{stack}.block.attention.heads=3" for stack in ("encoder", "decoder")),
            *(f"{stack}.block.feed_forward.hidden=20" for stack in ("encoder", "decoder")),
        ],
    )
    place = deployed(spec, tmp_path / "out", "transformers-js", target=target)
    graphs = json.loads((place / "export.json").read_text())["graphs"]
    names = [f"{layer}.{each}" for layer in (0, 1) for each in ("key", "value")]
    merged = graphs["onnx/decoder_model_merged.onnx"]
    past = [f"past_key_values.{name}" for name in names]
    assert list(merged["inputs"]) == ["input_ids", *past, "encoder_hidden_states"]
    assert list(merged["outputs"]) == ["logits", *(f"present.{name}" for name in names)]


def test_verification_runs_the_further_steps_of_a_merged_decoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the encoder's output is projected at every step, and appended to what is cached of it."""
    monkeypatch.setattr(encoder_decoder_tasks, "projected_length", lambda cached: 0)
    with pytest.raises(VerificationError):
        export(t5(), tmp_path / "x", ExportOptions(layout="transformers-js"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["first_decoder_task", "next_decoder_task"])
def test_verification_runs_each_of_the_graphs_of_optimum(
    graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = getattr(tasks, graph)

    def wrong(*arguments: Any) -> Task:
        task = make(*arguments)

        def call(model: Any, values: Any) -> Any:
            outputs = task.call(model, values)
            return {**outputs, "logits": outputs["logits"] * 1.01}

        return replace(task, call=call)

    monkeypatch.setattr(tasks, graph, wrong)
    with pytest.raises(VerificationError, match="logits"):
        export(t5(), tmp_path / "x", ExportOptions(layout="optimum"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "suffix", "dtype"),
    [("fp16", "_fp16", "fp16"), ("int8", "_quantized", "q8"), ("int4", "_q4", "q4")],
)
def test_transformers_js_finds_precisions_by_file_name(
    precision: str, suffix: str, dtype: str, tmp_path: Path
) -> None:
    directory = deployed(wide_t5(), tmp_path / "x", "transformers-js", precision=precision)
    graphs = {f"onnx/{name}{suffix}.onnx" for name in ("encoder_model", "decoder_model_merged")}
    assert files(directory) == {*graphs, *(f"{name}_data" for name in graphs), "config.json"}
    assert read(directory / "config.json")["transformers.js_config"]["dtype"] == dtype


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp16", "int8", "int4"])
def test_optimum_takes_the_same_names_for_every_precision(precision: str, tmp_path: Path) -> None:
    directory = deployed(wide_t5(), tmp_path / "x", "optimum", precision=precision)
    assert files(directory) == {*SPLIT, "model.onnx_data", "config.json"}
    assert read(directory / "config.json")["dtype"] == ("float16" if precision == "fp16" else "float32")


# ------------------------------------------------------------------------------------------ settings


def test_genai_settings_describe_the_graph(tmp_path: Path) -> None:
    config = read(deployed(llama(), tmp_path / "x", "genai") / "genai_config.json")
    model, decoder = config["model"], config["model"]["decoder"]
    assert (model["type"], model["vocab_size"], model["context_length"]) == ("decoder", 20, 10)
    heads = {
        name: decoder[name]
        for name in ("num_attention_heads", "num_key_value_heads", "head_size", "hidden_size")
    }
    assert heads == {"num_attention_heads": 4, "num_key_value_heads": 2, "head_size": 16, "hidden_size": 64}
    graph = onnx.load(tmp_path / "x" / decoder["filename"], load_external_data=False).graph
    told = {name.replace("%d", "0") for name in [*decoder["inputs"].values(), *decoder["outputs"].values()]}
    assert told == {name for name in names([*graph.input, *graph.output]) if ".1." not in name}
    assert config["search"] == {"max_length": 10, "past_present_share_buffer": False}
    assert "eos_token_id" not in model


GEMMA_3 = [
    "decoder.layers=[{use: local, repeat: 2}, {use: null}]", "decoder.block.attention.heads=4", "decoder.block.attention.kv_heads=2", "vocab_size=300", "d_model=24",
    "decoder.block.attention.head_dim=8", "decoder.block.feed_forward.hidden=32", "image.layers=1", "image.d_model=16",
    "image.block.attention.heads=2", "image.block.feed_forward.hidden=16", "image.embedding.image_size=32", "connector.pool=1",
    "image.embedding.patch_size=2", "connector.token=299", "context_length=400",
]  # fmt: skip
"""A small Gemma 3, whose images have 256 vectors, too."""


def test_genai_settings_name_the_hidden_states_of_drafts(tmp_path: Path) -> None:
    """As ``MtpGenerator`` of onnxruntime-genai reads them."""
    options = {"verify": False, "outputs": ("last_hidden_state",)}
    main = read(deployed(gpt2(), tmp_path / "main", "genai", **options) / "genai_config.json")["model"]
    assert main["decoder"]["outputs"]["hidden_states"] == "last_hidden_state"
    assert main["mtp"] == {
        "main_hidden_states": "last_hidden_state",
        "outputs": {"hidden_states": "last_hidden_state"},
    }
    module = gpt2(embedding=NEXT_TOKEN)
    draft = read(deployed(module, tmp_path / "draft", "genai", verify=False) / "genai_config.json")["model"]
    assert draft["decoder"]["inputs"]["hidden_states"] == "hidden_states"
    assert draft["decoder"]["outputs"]["hidden_states"] == "last_hidden_state"
    assert "mtp" not in draft
    assert "zoo run TARGET --draft ." in (tmp_path / "draft" / "README.md").read_text()
    deployed(gpt2(), tmp_path / "alone", "genai", verify=False)
    half, full = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
    for name, dtype in (("main", half), ("draft", half), ("alone", full)):
        outputs = onnx.load(tmp_path / name / "model.onnx", load_external_data=False).graph.output
        (scores,) = (value for value in outputs if value.name == "logits")
        assert scores.type.tensor_type.elem_type == dtype


def test_genai_settings_describe_the_graphs_of_images(tmp_path: Path) -> None:
    spec = load("gemma3-4b", GEMMA_3)
    config = read(deployed(spec, tmp_path / "x", "genai", verify=False) / "genai_config.json")["model"]
    graphs = read(tmp_path / "x" / "export.json")["graphs"]
    assert config["type"] == "gemma3"
    for part in ("vision", "embedding", "decoder"):
        facts, stated = graphs[config[part]["filename"]], config[part]
        inputs, outputs = (
            {each.replace("%d", "0") for each in stated[side].values()} for side in ("inputs", "outputs")
        )
        assert inputs == {name for name in facts["inputs"] if "." not in name or ".0." in name}
        assert outputs == {name for name in facts["outputs"] if "." not in name or ".0." in name}
    steps = read(tmp_path / "x" / config["vision"]["config_filename"])["processor"]["transforms"]
    assert [step["operation"]["type"] for step in steps] == [
        "DecodeImage", "Resize", "Rescale", "Normalize", "Permute3D",
    ]  # fmt: skip
    assert steps[1]["operation"]["attrs"]["width"] == 32
    assert "create_multimodal_processor" in (tmp_path / "x" / "README.md").read_text()


@pytest.mark.slow
def test_zoo_runs_the_graphs_of_images_of_genai(tmp_path: Path) -> None:
    spec = load("gemma3-4b", GEMMA_3)
    images = np.random.default_rng(1).standard_normal((2, 3, 32, 32), np.float32)
    prompt = [[1, *[299] * 256, 5, 6]] * 2
    for layout in ("genai", "onnx"):
        written(spec, tmp_path / layout, layout=layout)
    found = [
        Generator(open_export(tmp_path / layout)).generate(prompt, 8, images=images).continuations
        for layout in ("genai", "onnx")
    ]
    assert found[0] == found[1]
    assert found[0][0].ids != found[0][1].ids


def test_a_model_without_a_limit_is_announced_with_one(tmp_path: Path) -> None:
    spec = gpt2(position={"kind": "alibi"}, context_length=None)
    config = read(deployed(spec, tmp_path / "x", "genai") / "genai_config.json")
    assert config["model"]["context_length"] == config["search"]["max_length"] == 4096


@one_in(3)
@pytest.mark.parametrize(("layout", "fused"), [("genai", 2), ("optimum", 0), ("transformers-js", 0)])
def test_operations_for_padding_on_the_right_are_for_clients_that_pad_there(
    layout: str, fused: int, tmp_path: Path
) -> None:
    directory = deployed(llama(), tmp_path / "x", layout, target="cpu")
    (facts,) = read(directory / "export.json")["graphs"].values()
    assert facts["operations"].get("GroupQueryAttention", 0) == fused
    if fused:
        assert read(directory / "genai_config.json")["search"]["past_present_share_buffer"] is True


def test_genai_runs_where_the_target_says(tmp_path: Path) -> None:
    directory = deployed(gpt2(), tmp_path / "x", "genai", target="cuda", verify=False)
    decoder = read(directory / "genai_config.json")["model"]["decoder"]
    assert decoder["session_options"]["provider_options"] == [{"cuda": {}}]


@pytest.mark.slow
def test_the_tokens_of_a_checkpoint_come_along(checkpoint: Path, tmp_path: Path) -> None:
    spec = import_checkpoint(checkpoint)
    for layout in ("onnx", "optimum", "transformers-js", "genai"):
        deployed(spec, tmp_path / layout, layout, weights=str(checkpoint))
        assert read(tmp_path / layout / "tokenizer.json") == {"version": "1.0"}
    config = read(tmp_path / "genai" / "genai_config.json")
    ids = {name: value for name, value in config["model"].items() if name.endswith("_token_id")}
    assert ids == {"bos_token_id": 3, "eos_token_id": [4, 6], "pad_token_id": 5}
    assert (config["search"]["do_sample"], config["search"]["temperature"], config["search"]["top_k"]) == (
        True,
        0.7,
        9,
    )
    for layout in ("optimum", "transformers-js"):
        generation = read(tmp_path / layout / "generation_config.json")
        assert generation["eos_token_id"] == [4, 6]
        assert generation["bos_token_id"] == 3
        assert transformers.GPT2Config.from_pretrained(tmp_path / layout).pad_token_id == 5


LLAMA_3, CHATML, GEMMA = (
    "{{ '<|start_header_id|>' + role + '<|end_header_id|>' + text + '<|eot_id|>' }}",
    "{{ '<|im_start|>' + role + text + '<|im_end|>' }}",
    "{{ '<start_of_turn>' + role + text + '<end_of_turn>' }}",
)


@one_in(4)
@pytest.mark.parametrize(
    ("template", "end", "stated", "ends"),
    [
        (LLAMA_3, "<|eot_id|>", {"eos_token_id": [4, 9]}, [4, 9]),
        (LLAMA_3, "<|eot_id|>", {"eos_token_id": 4, "do_sample": True}, [4, 9]),
        (CHATML, "<|im_end|>", None, [4, 9]),
        (GEMMA, "<end_of_turn>", {"eos_token_id": 4}, [4, 9]),
        ("{{ text }}", "<end_of_turn>", {"eos_token_id": 4}, 4),
        ("{{ '<|end|>' }}", "<|end|>", {"eos_token_id": 4}, 4),
    ],
)
@pytest.mark.parametrize("place", ["config", "file"])
def test_the_end_of_a_turn_ends_generation_in_every_layout(
    checkpoint: Path,
    tmp_path: Path,
    template: str,
    end: str,
    stated: dict[str, Any] | None,
    ends: Any,
    place: str,
) -> None:
    origin = tmp_path / "chat"
    shutil.copytree(checkpoint, origin)
    tokenizer: dict[str, Any] = {"tokenizer_class": "TokenizersBackend"}
    token = {"content": end, "special": True}
    if place == "config":
        tokenizer |= {"chat_template": template, "added_tokens_decoder": {"9": token}}
    else:
        (origin / "chat_template.jinja").write_text(template)
        (origin / "tokenizer.json").write_text(
            json.dumps({"version": "1.0", "added_tokens": [{"id": 9, **token}]})
        )
    (origin / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    (origin / "generation_config.json").unlink()
    if stated is not None:
        (origin / "generation_config.json").write_text(json.dumps(stated))
    spec = import_checkpoint(origin)
    for layout in ("optimum", "transformers-js", "genai"):
        directory = deployed(spec, tmp_path / layout, layout, weights=str(origin), verify=False)
        if layout == "genai":
            assert read(directory / "genai_config.json")["model"]["eos_token_id"] == ends
        else:
            assert read(directory / "generation_config.json")["eos_token_id"] == ends
    assert ModelSource(spec, str(origin), origin).ends == (ends if isinstance(ends, list) else [ends])


@pytest.mark.parametrize(("layout", "call"), [
    ("genai", "genai.Tokenizer(model)"), ("transformers-js", "AutoTokenizer.from_pretrained(directory)"),
])  # fmt: skip
def test_a_tokenizer_alone_gets_the_settings_that_clients_need(
    layout: str, call: str, checkpoint: Path, tmp_path: Path
) -> None:
    """As saved by the tokenizers library; onnxruntime-genai and transformers.js open none without a class."""
    shutil.copytree(checkpoint, tmp_path / "origin")
    (tmp_path / "origin/tokenizer_config.json").unlink()
    spec = import_checkpoint(tmp_path / "origin")
    directory = deployed(spec, tmp_path / "x", layout, weights=str(tmp_path / "origin"), verify=False)
    assert read(directory / "tokenizer_config.json") == {"tokenizer_class": "PreTrainedTokenizerFast"}
    assert (
        "okenizer.from_pretrained(" in (card := (directory / "README.md").read_text())
        or "genai.Tokenizer(" in card
    )


def test_a_tokenizer_of_a_later_transformers_has_a_name_that_optimum_knows(
    checkpoint: Path, tmp_path: Path
) -> None:
    deployed(import_checkpoint(checkpoint), tmp_path / "x", "optimum", weights=str(checkpoint))
    settings = read(tmp_path / "x" / "tokenizer_config.json")
    assert settings == {"tokenizer_class": "PreTrainedTokenizerFast", "a": 1}


def test_special_tokens_of_a_later_transformers_are_listed_as_optimum_reads_them(
    checkpoint: Path, tmp_path: Path
) -> None:
    origin = tmp_path / "origin"
    shutil.copytree(checkpoint, origin)
    words = Tokenizer(WordLevel({"<s>": 3, "</s>": 4, "<pad>": 5, "a": 0, "b": 1}, unk_token="<pad>"))
    words.pre_tokenizer = Whitespace()
    written = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        extra_special_tokens=["<x>", "<y>"],
    )
    written.save_pretrained(origin)
    assert read(origin / "tokenizer_config.json")["extra_special_tokens"] == ["<x>", "<y>"]
    deployed(import_checkpoint(checkpoint), tmp_path / "x", "optimum", weights=str(origin))
    settings = read(tmp_path / "x" / "tokenizer_config.json")
    assert settings["additional_special_tokens"] == ["<x>", "<y>"]
    assert "extra_special_tokens" not in settings
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "x")
    assert again.extra_special_tokens == ["<x>", "<y>"]
    assert (again.all_special_ids, again.get_vocab()) == (written.all_special_ids, written.get_vocab())
    assert again.decode(again("a<x>b<y>").input_ids, skip_special_tokens=True) == "a b"


@pytest.mark.parametrize("stated", [{"extra_special_tokens": {"image_token": "<x>"}}, {"a": 1}])
def test_other_settings_of_a_tokenizer_stay_as_they_are(
    stated: dict[str, Any], checkpoint: Path, tmp_path: Path
) -> None:
    origin = tmp_path / "origin"
    shutil.copytree(checkpoint, origin)
    (origin / "tokenizer_config.json").write_text(json.dumps(stated))
    deployed(import_checkpoint(checkpoint), tmp_path / "x", "optimum", weights=str(origin))
    assert read(tmp_path / "x" / "tokenizer_config.json") == stated


# ------------------------------------------------------------------------------------------ refusals


REFUSALS = [
    ("genai", t5(), "it loads only decoders, and the architecture is encoder-decoder", "onnx, optimum, transformers-js"),
    ("genai", bert(), "it loads only decoders, and the architecture is encoder", "onnx, optimum, transformers-js"),
    ("genai", gpt2(embedding={"token_types": 2}), "it does not provide token types", "onnx"),
    ("optimum", gpt2(embedding=NEXT_TOKEN), "it does not provide the hidden states of another model", "onnx, genai"),
    ("transformers-js", gpt2(embedding=NEXT_TOKEN), "it does not provide the hidden states of another model", "onnx, genai"),
    ("genai", gpt2(position={"kind": "rope"}, decoder={"layers": 2, "block": {**BLOCK, "attention": LATENT}}),
     "keys and values of equal width, and their widths are 6 and 4", "onnx"),
    ("genai", load("llava-1.5-7b"), "it writes prompts with images for gemma3 alone, and the model is llava", "onnx, transformers-js"),
    ("genai", load("gemma3-4b", ["connector.pool=8"]), "it expects 256 vectors of an image, and the model has 64", "onnx"),
    ("optimum", gpt2(position={"kind": "alibi"}), "fits no class of any known family", "onnx, genai"),
    ("optimum", gpt2(head={"kind": "classification", "labels": 3, "pooling": "last"}), "and the head is classification", "onnx"),
    ("optimum", llama(head_dim=8), "caches with 2 heads of width 16, and the model has 2 of width 8", "onnx, genai, transformers-js"),
    ("optimum", load("llava-1.5-7b"), "it has no class for decoders that read images", "onnx, transformers-js"),
    ("optimum", load("owlvit-base-32"), "it has no class for models that detect what texts name", "onnx, transformers-js"),
    ("transformers-js", load("idefics2-8b"), "it lacks the class Idefics2ForConditionalGeneration", "onnx"),
    ("transformers-js", load("internvl3-1b"), "it lacks the class InternVLForConditionalGeneration", "onnx"),
    ("optimum", load("mixtral-8x7b"), "mixtral caches with 32 heads of width 128, and the model has 8", "onnx, genai"),
    ("transformers-js", load("gpt1"), "it lacks the class OpenAIGPTLMHeadModel", "onnx, genai, optimum"),
    ("transformers-js", load("falcon-7b"), "where multi_query is true", "onnx, genai, optimum"),
    ("transformers-js", load("nano-gpt"), "fits no class of any known family", "onnx, genai"),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "spec", "reason", "others"), REFUSALS)
def test_unloadable_models_are_refused_with_the_layouts_that_work(
    layout: str, spec: Model, reason: str, others: str
) -> None:
    with pytest.raises(LayoutError) as refused:
        check_layout(LAYOUTS[layout], deployment(spec))
    assert f"layout {layout}: {LAYOUTS[layout].client} cannot load {spec.name}" in str(refused.value)
    assert reason in str(refused.value)
    assert str(refused.value).endswith(f"  Use layout {others.replace(', ', ' or ')}.")


def test_genai_does_not_run_on_every_target() -> None:
    with pytest.raises(
        LayoutError, match="it has no execution provider for target tensorrt\n  Use layout onnx or optimum"
    ):
        check_layout(LAYOUTS["genai"], deployment(gpt2(), target="tensorrt"))


@pytest.mark.parametrize("layout", ["optimum", "transformers-js"])
def test_tensors_of_bfloat16_are_for_genai_alone(layout: str) -> None:
    with pytest.raises(LayoutError, match="it does not support bfloat16 tensors\n  Use layout onnx or genai"):
        check_layout(LAYOUTS[layout], deployment(gpt2(), precision="bf16"))


def test_a_refusal_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(LayoutError):
        export(vit(), tmp_path / "x", ExportOptions(layout="genai"))
    assert list(tmp_path.iterdir()) == []


def test_the_stock_exporter_writes_one_layout() -> None:
    with pytest.raises(UserError, match="via torch writes only layout onnx\n  value: genai\n  Use via fx"):
        ExportOptions(via="torch", layout="genai")
