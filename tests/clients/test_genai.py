"""onnxruntime-genai generates from an export what transformers generates from the checkpoint."""

from __future__ import annotations

import pytest

from tests.clients.client import GENAI
from tests.clients.conftest import Agree

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
