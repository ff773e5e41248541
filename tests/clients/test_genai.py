"""onnxruntime-genai generates from an export what transformers generates from the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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


@pytest.mark.parametrize(("name", "target"), [("gpt2", "portable"), ("llama", "cpu")])
def test_a_decoder_that_scores_the_last_token_alone(name: str, target: str, agrees: Agree) -> None:
    agrees(GENAI, name, "genai", target, logits="last")


@pytest.mark.parametrize("cache", ["int8", "int4"])
def test_a_decoder_with_a_quantized_cache(
    cache: str, made: Callable[[str], Checkpoint], tmp_path: Path
) -> None:
    """The same tokens as zoo's own runtime: both read and write the codes of one file."""
    origin = made("llama").directory
    options = Options(weights=str(origin), layout="genai", target="cpu", cache_precision=cache, max_kl=10.0)
    export(import_checkpoint(origin), tmp_path / "deployed", options)
    (answer,) = GENAI(tmp_path / "deployed", batches=[TEXTS[:1]], new_tokens=NEW_TOKENS)
    text = find_text(tmp_path / "deployed", None, needed=True)
    assert text is not None
    generator = Generator(open_export(tmp_path / "deployed"))
    assert answer["tokens"] == [generator.generate(text.ids(TEXTS[:1]), NEW_TOKENS).continuations[0].ids]
