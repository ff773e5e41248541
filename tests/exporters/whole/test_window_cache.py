"""Caches that hold a window alone: the same tokens as with full caches, in less memory, and refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import fx
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from exporters.export import export
from exporters.graph import trace
from exporters.graph.fusing.cache_forms import hold_windows
from exporters.graph.fusing.functions import group_query_attention
from exporters.runtime import decoding
from exporters.runtime.decoding import Decoding
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from exporters.steps.options import ExportOptions
from exporters.verification.result import VerificationError
from exporters.verification.runtime_outputs import tokens_held
from specs.base.errors import UserError
from specs.model.model import Model
from tests.zoo.tiny import bert, gpt2, t5
from zoo import import_checkpoint
from zoo.record.records import CacheRecord
from zoo.tracing.symbols import Symbols
from zoo.tracing.task import Task

WINDOW = 6
SLOTS = WINDOW + 16
SIZES = {
    "vocab_size": 61, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "initializer_range": 0.3, "bos_token_id": 1,
    "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip


def two_layers(first: dict[str, Any], second: dict[str, Any], **changes: Any) -> Model:
    """A decoder of two layers, whose attentions differ in some fields."""

    def block(fields: dict[str, Any]) -> dict[str, Any]:
        return {
            "kind": "pre_norm",
            "norm": {"kind": "rms_norm"},
            "attention": {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "bias": False, **fields},
            "feed_forward": {"kind": "gated", "hidden": 12, "activation": "silu", "bias": False},
        }

    decoder = {
        "block": block(first),
        "blocks": {"second": block(second)},
        "layers": [{"repeat": 1}, {"use": "second"}],
    }
    return gpt2(d_model=64, vocab_size=61, position={"kind": "rope"}, decoder=decoder, **changes)


def windowed(context_length: int = 128, window: int = WINDOW) -> Model:
    """A decoder whose first layer has a window and whose second has none."""
    return two_layers({"window": window}, {}, context_length=context_length)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of a decoder with one windowed layer, verified."""
    place = tmp_path_factory.mktemp("windows") / "out"
    export(windowed(), place, ExportOptions(target="cpu", window_cache=True))
    return place


def test_what_an_export_states(exported: Path) -> None:
    found = open_export(exported).manifest
    assert found.cache == CacheRecord(
        kind="shared", padding="none", windows={f"window_{WINDOW}_slots": SLOTS}
    )
    assert found.options.window_cache
    inputs = found.graphs["model.onnx"].inputs
    assert inputs["past_key_values.0.key"] == ("batch_size", 2, f"window_{WINDOW}_slots", 16)
    assert inputs["past_key_values.1.key"] == ("batch_size", 2, "past_sequence_length", 16)
    nodes = onnx.load(exported / "model.onnx", load_external_data=False).graph.node
    held = [
        {attribute.name for attribute in node.attribute} & {"local_window_size", "sliding_window_cache"}
        for node in nodes
        if node.op_type == "GroupQueryAttention"
    ]
    assert held == [{"local_window_size", "sliding_window_cache"}, set()]
    assert f"`window_{WINDOW}_slots` = {SLOTS}" in (exported / "README.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gemma2", "mistral"])
def test_the_logits_of_transformers_beyond_the_windows(kind: str, tmp_path: Path) -> None:
    """A prompt longer than a window and than its slots, in one call, and steps until keys are moved twice."""
    config = (
        Gemma2Config(**SIZES, sliding_window=WINDOW, head_dim=16, attn_implementation="eager")
        if kind == "gemma2"
        else MistralConfig(**SIZES, sliding_window=WINDOW)
    )
    torch.manual_seed(4)
    reference = (Gemma2ForCausalLM if kind == "gemma2" else MistralForCausalLM)(config).eval()
    reference.save_pretrained(tmp_path / "origin")
    options = ExportOptions(weights=str(tmp_path / "origin"), target="cpu", window_cache=True)
    export(import_checkpoint(tmp_path / "origin"), tmp_path / "out", options)
    reference = AutoModelForCausalLM.from_pretrained(tmp_path / "origin", attn_implementation="eager")
    ids = np.random.default_rng(0).integers(3, 61, (2, 70)).tolist()
    with torch.no_grad():
        expected = reference(torch.tensor(ids)).logits.numpy()  # 2 70 V
    found = open_export(tmp_path / "out")
    for prompt in (3, WINDOW, SLOTS, 31):
        reading = Decoding(found.open(-1, 1), found.cache, 2, 70)
        scores = reading.read([row[:prompt] for row in ids])
        for end in range(prompt, 70):
            np.testing.assert_allclose(
                scores, expected[:, end - 1], atol=2e-4, rtol=0, err_msg=f"{prompt} {end}"
            )
            scores = reading.read([[row[end]] for row in ids])


def test_prompts_are_read_in_parts(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row at a time: GroupQueryAttention takes several tokens after a past only of one row."""
    found, row = open_export(exported), np.random.default_rng(1).integers(0, 40, 50).tolist()
    whole = Decoding(found.open(-1, 1), found.cache, 1, 60).read([row])
    for part in (1, 7, 25, 49, 50):
        monkeypatch.setattr(decoding, "PART", part)
        scores = Decoding(found.open(-1, 1), found.cache, 1, 60).read([row])
        np.testing.assert_allclose(scores, whole, atol=1e-5, rtol=0, err_msg=str(part))


def test_prompts_of_several_lengths(exported: Path, tmp_path: Path) -> None:
    """Are run one by one, as rows have no padding, with the tokens of full caches."""
    export(windowed(), tmp_path / "full", ExportOptions(target="cpu", verify=False))
    prompts = [[*range(3, 30)], [5, 4], [7, 9]]
    windows, full = (Generator(open_export(place)) for place in (exported, tmp_path / "full"))
    assert [found.ids for found in windows.generate(prompts, 40).continuations] == [
        found.ids for found in full.generate(prompts, 40).continuations
    ]
    found = open_export(exported)
    with pytest.raises(UserError) as error:
        Decoding(found.open(-1, 1), found.cache, 2, 9).read([[1, 2, 3], [4, 5]])
    assert str(error.value) == (
        "Prompts of a batch must have the same length in an export with window_cache\n"
        "  value: 2, 3 tokens\n  Read them one by one, or export without it."
    )


def test_the_program_of_an_export_generates_the_same(exported: Path, tmp_path: Path) -> None:
    readme = (exported / "README.md").read_text("utf-8")
    program = next(part for part in readme.split("```python\n")[1:] if "session.run" in part).split("```")[0]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=exported, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    printed = [int(word) for word in done.stdout.strip("[] \n").split()]
    prompt = printed[:-20]
    (found,) = Generator(open_export(exported)).generate([prompt], 20).continuations
    assert printed == [*prompt, *found.ids]


def test_the_memory_of_32768_tokens(tmp_path: Path) -> None:
    """A layer with a window of 512 needs the memory of 528 tokens."""
    bytes_of = {}
    for window_cache in (False, True):
        options = ExportOptions(target="cpu", window_cache=window_cache, weights="random", verify=False)
        export(windowed(32768, 512), tmp_path / str(window_cache), options)
        found = open_export(tmp_path / str(window_cache))
        bytes_of[window_cache] = Decoding(found.open(-1, 1), found.cache, 1, 32768).bytes_at(32768)
    token = 2 * 2 * 16 * 4  # keys and values, heads, width, float32
    assert bytes_of == {False: 2 * 32768 * token, True: (32768 + 528) * token}


@pytest.mark.slow
def test_a_window_that_is_too_short_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def shorter(graph: fx.Graph, task: Task, symbols: Symbols) -> Symbols:
        symbols = hold_windows(graph, task, symbols)
        for node in graph.nodes:
            if node.target is group_query_attention and node.kwargs.get("window_cache"):
                node.kwargs = {**node.kwargs, "window": node.kwargs["window"] - 1}
        return symbols

    monkeypatch.setattr(trace, "hold_windows", shorter)
    with pytest.raises(VerificationError):
        export(windowed(), tmp_path / "out", ExportOptions(target="cpu", window_cache=True))
    assert not (tmp_path / "out").exists()


def test_the_tokens_that_a_cache_holds() -> None:
    """All until it is full; then a whole cache loses what is before the window, at once."""
    assert [tokens_held(4, 4, tokens) for tokens in range(1, 8)] == [1, 2, 3, 4, 4, 4, 4]
    assert [tokens_held(4, 6, tokens) for tokens in range(1, 14)] == [1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4]


def test_the_settings_of_onnxruntime_genai(tmp_path: Path) -> None:
    options = ExportOptions(target="cpu", layout="genai", window_cache=True, verify=False)
    export(windowed(32768, 512), tmp_path / "out", options)
    decoder = json.loads((tmp_path / "out" / "genai_config.json").read_text("utf-8"))["model"]["decoder"]
    assert decoder["sliding_window"] == {
        "window_size": 512, "slide_key_value_cache": False, "slide_inputs": False, "layers": [0], "cache_slack": 16,
    }  # fmt: skip
    assert "max_length=528" in (tmp_path / "out" / "README.md").read_text("utf-8")


@pytest.mark.slow
def test_cuda_has_no_slots_beyond_the_window(tmp_path: Path) -> None:
    """Its kernel takes no more; the files are computed on the CPU here."""
    options = ExportOptions(target="cuda", precision="fp16", window_cache=True)
    found = export(windowed(), tmp_path / "out", options).manifest.cache
    assert found is not None
    assert found.windows == {f"window_{WINDOW}_slots": WINDOW}


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp16", "int8", "int4"])
def test_precisions(precision: str, tmp_path: Path) -> None:
    export(
        windowed(), tmp_path / "out", ExportOptions.of(target="cpu", precision=precision, window_cache=True)
    )


REUSING = two_layers({"window": 6}, {"window": 6, "reuses_keys_values": True})
TWO_WINDOWS = two_layers({"window": 6}, {"window": 9})


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        (bert(), {}, "window_cache applies only to decoders\n  value: tiny-bert; the architecture is encoder\n  Leave it out."),
        (t5(), {}, "window_cache applies only to decoders\n  value: tiny-t5; the architecture is encoder-decoder\n"),
        (gpt2(), {}, "window_cache needs layers whose window is shorter than the context\n  value: tiny-gpt2 has none\n"),
        (windowed(window=128), {}, "window_cache needs layers whose window is shorter than the context\n"),
        (windowed(), {"target": "portable"}, "window_cache needs attention operations that drop the keys before a window\n"
         "  value: target portable\n  Pass target cpu or cuda, or leave it out."),
        (windowed(), {"target": "webgpu"}, "window_cache needs attention operations that drop the keys before a window\n"),
        (windowed(), {"layout": "transformers-js"}, "window_cache needs a client that gives each layer a cache of its own length\n"
         "  value: layout transformers-js\n  Pass layout onnx or genai, or leave it out."),
        (windowed(), {"cache_precision": "int8"}, "window_cache and cache_precision are mutually exclusive\n"
         "  value: cache_precision int8\n  Leave one of them out."),
        (windowed(), {"via": "torch"}, "window_cache needs zoo's own tracer\n  value: via torch\n"),
        (windowed(), {"precision": "bf16"}, "window_cache needs every attention of tiny-gpt2 fused with its cache\n"
         "  value: GroupQueryAttention: "),
        (REUSING, {}, "window_cache needs keys and values of its own in every "
         "layer, because each drops them from its cache\n  value: tiny-gpt2, whose layer 1 reuses the keys and values"),
        (TWO_WINDOWS, {"layout": "genai"}, "layout genai has caches for one window\n"
         "  value: tiny-gpt2 has windows of 6 and 9 tokens\n  Leave window_cache out."),
    ],
)  # fmt: skip
def test_refusals(spec: Model, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        export(spec, tmp_path / "out", ExportOptions.of(**{"target": "cpu", "window_cache": True, **options}))
    assert str(error.value).startswith(message)
    assert not (tmp_path / "out").exists()
