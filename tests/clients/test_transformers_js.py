"""transformers.js, in Node, generates from an export what transformers generates from the checkpoint, and gives the same vectors."""

from __future__ import annotations

import pytest

from tests.clients.client import TRANSFORMERS_JS
from tests.clients.conftest import Agree, Near

pytestmark = pytest.mark.clients


@pytest.mark.parametrize(("target", "head"), [("portable", "pooler"), ("cpu", "pooler"), ("cpu", "pooled")])
def test_vectors(target: str, head: str, near: Near) -> None:
    near(TRANSFORMERS_JS, "transformers-js", target, head, class_name="AutoModel")


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
    agrees(TRANSFORMERS_JS, name, "transformers-js", target, class_name="AutoModelForCausalLM")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("lfm2", "portable"),
        ("granite_hybrid", "portable"),
        ("qwen3_next", "portable"),
        ("qwen3_5", "portable"),
        ("nemotron_h", "portable"),
        ("lfm2", "cpu"),
    ],
)
def test_a_decoder_with_states_of_constant_size(name: str, target: str, agrees: Agree) -> None:
    agrees(TRANSFORMERS_JS, name, "transformers-js", target, class_name="AutoModelForCausalLM")


@pytest.mark.parametrize(("name", "target"), [("t5", "portable"), ("bart", "portable"), ("t5", "cpu")])
def test_an_encoder_decoder(name: str, target: str, agrees: Agree) -> None:
    agrees(TRANSFORMERS_JS, name, "transformers-js", target, class_name="AutoModelForSeq2SeqLM")
