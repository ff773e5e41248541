"""optimum generates from an export what transformers generates from the checkpoint, and gives the same vectors."""

from __future__ import annotations

import pytest

from tests.clients.client import OPTIMUM
from tests.clients.conftest import Agree, Near

pytestmark = pytest.mark.clients


def test_vectors(near: Near) -> None:
    near(OPTIMUM, "optimum", **{"class": "ORTModelForFeatureExtraction"})


@pytest.mark.parametrize(
    ("name", "target"),
    [("gpt2", "portable"), ("llama", "portable"), ("mistral", "portable"), ("llama", "cpu")],
)
def test_a_decoder(name: str, target: str, agrees: Agree) -> None:
    agrees(OPTIMUM, name, "optimum", target, **{"class": "ORTModelForCausalLM"})


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_an_encoder_decoder(name: str, agrees: Agree) -> None:
    agrees(OPTIMUM, name, "optimum", **{"class": "ORTModelForSeq2SeqLM"})
