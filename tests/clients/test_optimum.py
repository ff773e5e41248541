"""optimum generates from an export what transformers generates from the checkpoint, and gives the same vectors."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer

from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.clients.client import OPTIMUM, SENTENCE_TRANSFORMERS
from tests.clients.conftest import Agree, Fits, Hears, Near
from tests.parity.minilm import SENTENCES, load_minilm
from zoo import import_checkpoint

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


def test_additional_outputs_are_passed_over(agrees: Agree) -> None:
    agrees(OPTIMUM, "llama", "optimum", class_name="ORTModelForCausalLM", outputs=["hidden:1", "attention:0"])


@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_tokens_from_recordings(target: str, hears: Hears) -> None:
    hears(OPTIMUM, "optimum", target, class_name="ORTModelForSpeechSeq2Seq")


@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_texts_fit_images(target: str, fits: Fits) -> None:
    fits(OPTIMUM, "optimum", target, class_name="ORTModelForZeroShotImageClassification")


@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_a_sentence_encoder_in_sentence_transformers(target: str, tmp_path: Path) -> None:
    minilm = load_minilm()
    spec = import_checkpoint(minilm.directory)
    options = ExportOptions(weights=str(minilm.directory), layout="optimum", target=target)
    export(spec, tmp_path / "deployed", options)
    answer = SENTENCE_TRANSFORMERS(tmp_path / "deployed", texts=list(SENTENCES))
    expected = torch.from_numpy(
        SentenceTransformer(str(minilm.directory), device="cpu").encode(list(SENTENCES))
    )
    difference = float((torch.tensor(answer["vectors"]) - expected).abs().max())
    print(
        f"MiniLM, {len(SENTENCES)} sentences: sentence-transformers' ONNX backend differs by at most {difference:.1e}"
    )
    assert difference < 1e-5
