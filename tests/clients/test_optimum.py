"""optimum generates from an export what transformers generates from the checkpoint, and gives the same vectors."""

from __future__ import annotations

import pytest

from tests.clients.client import OPTIMUM
from tests.clients.conftest import Agree, Hears, Near

pytestmark = pytest.mark.clients


@pytest.mark.parametrize(("target", "head"), [("portable", "pooler"), ("cpu", "pooler"), ("cpu", "pooled")])
def test_vectors(target: str, head: str, near: Near) -> None:
    near(OPTIMUM, "optimum", target, head, class_name="ORTModelForFeatureExtraction")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("gpt2", "portable"),
        ("llama", "portable"),
        ("mistral", "portable"),
        ("llama", "cpu"),
        ("qwen3_moe", "portable"),
        ("qwen3_moe", "cpu"),
    ],
)
def test_a_decoder(name: str, target: str, agrees: Agree) -> None:
    agrees(OPTIMUM, name, "optimum", target, class_name="ORTModelForCausalLM")


@pytest.mark.parametrize(("name", "target"), [("t5", "portable"), ("bart", "portable"), ("t5", "cpu")])
def test_an_encoder_decoder(name: str, target: str, agrees: Agree) -> None:
    agrees(OPTIMUM, name, "optimum", target, class_name="ORTModelForSeq2SeqLM")


@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_tokens_from_recordings(target: str, hears: Hears) -> None:
    hears(OPTIMUM, "optimum", target, class_name="ORTModelForSpeechSeq2Seq")
