"""onnxruntime-genai generates from an export what transformers generates from the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exporters.export import export
from exporters.options import Options
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from exporters.runtime.text import find_text
from tests.clients.checkpoints import Checkpoint
from tests.clients.client import GENAI
from tests.clients.conftest import NEW_TOKENS, TEXTS, Agree
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


def _same_as_own_runtime(origin: Path, place: Path, target: str = "cpu", **rounded: Any) -> None:
    """Check that an export, in few bits, generates the same tokens as in zoo's own runtime, which verification compares with
    PyTorch."""
    options = Options(weights=str(origin), layout="genai", target=target, max_kl=10.0, **rounded)
    export(import_checkpoint(origin), place / "deployed", options)
    (answer,) = GENAI(place / "deployed", batches=[TEXTS[:1]], new_tokens=NEW_TOKENS)
    text = find_text(place / "deployed", None, needed=True)
    assert text is not None
    generator = Generator(open_export(place / "deployed"))
    assert answer["tokens"] == [generator.generate(text.ids(TEXTS[:1]), NEW_TOKENS).continuations[0].ids]
