"""onnxruntime-genai generates from an export what transformers generates from the checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from PIL import Image
from sklearn.datasets import load_sample_images
from transformers import AutoModelForCausalLM

from exporters.export import export
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from exporters.runtime.text import find_text
from exporters.steps.options import ExportOptions
from tests.clients.checkpoints import Checkpoint, gemma3
from tests.clients.client import GENAI, GENAI_MTP
from tests.clients.conftest import NEW_TOKENS, TEXTS, Agree
from tests.exporters.runtime.test_next_token import pair
from tests.exporters.runtime.test_speculative import spec
from zoo import import_checkpoint

pytestmark = pytest.mark.clients


@pytest.mark.parametrize(
    ("name", "target"),
    [("gpt2", "portable"), ("llama", "portable"), ("gpt2", "cpu"), ("llama", "cpu"), ("mistral", "cpu")],
)
def test_a_decoder(name: str, target: str, agrees: Agree) -> None:
    agrees(GENAI, name, "genai", target)


@pytest.mark.parametrize(
    ("name", "target"), [("qwen3_moe", "portable"), ("qwen3_moe", "cpu"), ("mixtral", "cpu")]
)
def test_a_mixture(name: str, target: str, agrees: Agree) -> None:
    agrees(GENAI, name, "genai", target)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("lfm2", "portable"),
        ("lfm2", "cpu"),
        ("granite_hybrid", "portable"),
        ("granite_hybrid", "cpu"),
        ("qwen3_next", "cpu"),
        ("mamba2", "cpu"),
        ("falcon_h1", "portable"),
        ("falcon_h1", "cpu"),
        ("zamba2", "portable"),
        ("zamba2", "cpu"),
    ],
)
def test_a_decoder_with_states_of_constant_size(name: str, target: str, agrees: Agree) -> None:
    agrees(GENAI, name, "genai", target)


@pytest.mark.parametrize(("name", "target"), [("gpt2", "portable"), ("llama", "cpu")])
def test_a_decoder_that_scores_the_last_token_alone(name: str, target: str, agrees: Agree) -> None:
    agrees(GENAI, name, "genai", target, logits="last")


@pytest.mark.parametrize("outputs", [["hidden:1"], ["hidden:1", "attention:0"]])
def test_a_decoder_with_additional_outputs(outputs: list[str], agrees: Agree) -> None:
    agrees(GENAI, "llama", "genai", "cpu", outputs=outputs)


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "qwen3"])
def test_a_decoder_on_webgpu(name: str, agrees: Agree) -> None:
    agrees(GENAI, name, "genai", "webgpu", webgpu=True)


@pytest.mark.parametrize("cache", ["int8", "int4"])
def test_a_decoder_with_a_quantized_cache(
    cache: str, made: Callable[[str], Checkpoint], tmp_path: Path
) -> None:
    """Both read and write the codes of one file."""
    _same_as_own_runtime(made("llama").directory, tmp_path, cache_precision=cache)


@pytest.mark.parametrize(
    ("name", "target"), [("qwen3_moe", "cpu"), ("mixtral", "cpu"), ("mixtral", "portable")]
)
def test_a_mixture_with_quantized_experts(
    name: str, target: str, made: Callable[[str], Checkpoint], tmp_path: Path
) -> None:
    _same_as_own_runtime(made(name).directory, tmp_path, target, precision="int4")


@pytest.mark.parametrize("name", ["mistral", "gemma2"])
def test_caches_that_hold_windows(name: str, made: Callable[[str], Checkpoint], tmp_path: Path) -> None:
    """The prompt is longer than a window, and the text than the slots that the client allocates for one."""
    origin = made(name)
    spec = import_checkpoint(origin.directory)
    options = ExportOptions(weights=str(origin.directory), layout="genai", target="cpu", window_cache=True)
    slots = max(export(spec, tmp_path / "deployed", options).manifest.cache.windows.values())
    text = "The quick brown fox jumps over the lazy dog"
    assert len(origin.tokenizer(text).input_ids) > slots - 16
    assert slots < NEW_TOKENS
    (answer,) = GENAI(tmp_path / "deployed", batches=[[text]], new_tokens=2 * NEW_TOKENS)
    assert answer["tokens"] == origin.greedy([text], 2 * NEW_TOKENS)


@pytest.mark.parametrize(
    ("base", "precision", "settings"),
    [
        ("llama", "fp32", {"target_modules": "all-linear"}),
        ("llama", "int4", {"target_modules": "all-linear"}),
        ("qwen3_moe", "fp32", {"target_modules": ["q_proj"], "target_parameters": ["experts.down_proj"]}),
    ],
)
def test_adapters_are_switched(
    base: str,
    precision: str,
    settings: dict[str, Any],
    made: Callable[[str], Checkpoint],
    tmp_path: Path,
) -> None:
    """None, one, another, and none again, each as in zoo's own runtime, which verification compares with PyTorch."""
    origin = made(base).directory
    names = ["first", "second"]
    for rank, name in enumerate(names, 2):
        model = get_peft_model(AutoModelForCausalLM.from_pretrained(origin), LoraConfig(r=rank, **settings))
        generator = torch.Generator().manual_seed(rank)
        with torch.no_grad():
            for parameter in (parameter for parameter in model.parameters() if parameter.requires_grad):
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
        model.save_pretrained(str(tmp_path / name))
    options = ExportOptions.of(
        weights=str(origin),
        layout="genai",
        target="cpu",
        precision=precision,
        adapters=[f"{name}={tmp_path / name}" for name in names],
        **({} if precision == "fp32" else {"max_kl": 10.0}),
    )
    export(import_checkpoint(origin), tmp_path / "deployed", options)
    order = [None, *names, None]
    answers = GENAI(
        tmp_path / "deployed",
        adapters={name: str(tmp_path / "deployed" / f"{name}.onnx_adapter") for name in names},
        adapted=[{"texts": TEXTS[:1], "adapter": name} for name in order],
        new_tokens=NEW_TOKENS,
    )
    text = find_text(tmp_path / "deployed", None, needed=True)
    assert text is not None
    expected = [
        Generator(open_export(tmp_path / "deployed", adapter=name))
        .generate(text.ids(TEXTS[:1]), NEW_TOKENS)
        .continuations[0]
        .ids
        for name in order
    ]
    found = [answer["tokens"][0] for answer in answers]
    print(f"llama in {precision} with adapters {order}\n  onnxruntime-genai {found}")
    assert found == expected
    assert len({tuple(ids) for ids in found}) == 3


MARKS = ["<start_of_image>", "<image_soft_token>", "<end_of_image>"]
"""The tokens with which the client writes an image."""


@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_what_is_said_about_an_image(target: str, tmp_path: Path) -> None:
    """Gemma 3, whose decoder sees the vectors of an image in both directions; and a prompt without an image."""
    origin = gemma3(tmp_path / "reference", MARKS)
    options = ExportOptions(weights=str(origin.directory), layout="genai", target=target)
    export(import_checkpoint(origin.directory), tmp_path / "deployed", options)
    photos = [Image.fromarray(each).crop((100, 60, 164, 124)) for each in load_sample_images().images]
    for name, photo in zip(("temple", "flower"), photos, strict=True):
        photo.save(tmp_path / f"{name}.png")
    shown = "<start_of_image>The quick brown fox"
    asked = [{"prompt": shown, "images": [str(tmp_path / f"{name}.png")]} for name in ("temple", "flower")]
    answers = GENAI(
        tmp_path / "deployed", asked=[*asked, {"prompt": TEXTS[1], "images": []}], new_tokens=NEW_TOKENS
    )
    begin, seen, end = origin.tokenizer.convert_tokens_to_ids(MARKS)
    around, text = (origin.tokenizer(words).input_ids for words in ("\n\n", "The quick brown fox"))
    prompt = [*around, begin, *[seen] * 256, end, *around, *text]
    assert [answer["prompt"] for answer in answers] == [prompt, prompt, origin.tokenizer(TEXTS[1]).input_ids]
    ids = torch.tensor([prompt])
    expected = [
        origin.generated(
            NEW_TOKENS,
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            token_type_ids=(ids == seen).to(torch.int64),
            pixel_values=torch.from_numpy(np.array(photo)).permute(2, 0, 1)[None].float() / 127.5 - 1,
        )
        for photo in photos
    ]
    expected += origin.greedy([TEXTS[1]], NEW_TOKENS)
    found = [answer["tokens"] for answer in answers]
    print(f"Gemma 3 for {target}\n  onnxruntime-genai {found}\n  transformers      {expected}")
    assert found == expected
    assert expected[0] != expected[1]


def _same_as_own_runtime(origin: Path, place: Path, target: str = "cpu", **rounded: Any) -> None:
    """Check that an export, in few bits, generates the same tokens as in zoo's own runtime, which verification compares with
    PyTorch."""
    options = ExportOptions(weights=str(origin), layout="genai", target=target, max_kl=10.0, **rounded)
    export(import_checkpoint(origin), place / "deployed", options)
    (answer,) = GENAI(place / "deployed", batches=[TEXTS[:1]], new_tokens=NEW_TOKENS)
    text = find_text(place / "deployed", None, needed=True)
    assert text is not None
    generator = Generator(open_export(place / "deployed"))
    assert answer["tokens"] == [generator.generate(text.ids(TEXTS[:1]), NEW_TOKENS).continuations[0].ids]


@pytest.mark.parametrize(
    ("name", "draft_tokens"),
    [("gpt2", 1), ("gpt2", 3), ("windowed", 3), ("latent", 3), ("gated_delta_net", 3), ("mamba2", 1)],
)
def test_a_draft_by_multi_token_prediction(name: str, tmp_path: Path, draft_tokens: int) -> None:
    target, draft, _ = pair(tmp_path, spec(name), layout="genai")
    prompt = [3, 1, 4, 1, 5]
    wanted = Generator(target).generate([prompt], 31).continuations[0].ids
    unused = next(token for token in range(20) if token not in wanted)
    for exported in (target, draft):  # no token ends the text
        path = exported.directory / "genai_config.json"
        config = json.loads(path.read_text())
        config["model"]["eos_token_id"] = unused
        path.write_text(json.dumps(config))
    asked = {"draft": str(draft.directory), "prompt": prompt, "length": 36, "draft_tokens": draft_tokens}
    found = GENAI_MTP(target.directory, **asked)
    assert found["tokens"] == [*prompt, *wanted]
    assert found["accepted"] > 0
