"""AntiBERTy, a BERT of antibodies with published weights, on germline sequences (Ruffolo et al., 2021)."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

from exporters.export import export
from exporters.exported.model_source import model_source
from exporters.steps.options import ExportOptions
from tests.registry import unpacked

WEIGHTS, SEQUENCES = "antiberty==0.1.3", "abnumber==0.4.4"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its directory, with the class of transformers in the place of its own."""
    place = unpacked(WEIGHTS, tmp_path_factory.mktemp("antiberty")) / "antiberty" / "trained_models"
    config = place / "AntiBERTy_md_smooth" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "architectures": ["BertModel"]}))
    return config.parent


@pytest.fixture(scope="module")
def sequences(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The token ids of the variable regions of germline genes, in any order."""
    source = unpacked(SEQUENCES, tmp_path_factory.mktemp("abnumber")) / "abnumber" / "germlines.py"
    aligned = re.findall(r"['\"]([A-Z-]{100,140})['\"]", source.read_text())
    found = sorted({each.replace("-", "") for each in aligned})
    random.Random(0).shuffle(found)
    vocabulary = {token: id for id, token in enumerate((checkpoint.parent / "vocab.txt").read_text().split())}
    rows = [
        [vocabulary[token] for token in ("[CLS]", *each, "[SEP]") if token in vocabulary] for each in found
    ]
    ids, mask = (np.zeros((len(rows), max(map(len, rows))), np.int64) for _ in range(2))
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
    path = tmp_path_factory.mktemp("sequences") / "sequences.npz"
    np.savez(path, input_ids=ids, attention_mask=mask)
    return path


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_it_keeps_its_vectors(checkpoint: Path, sequences: Path, tmp_path: Path) -> None:
    options = ExportOptions(weights=str(checkpoint), calibrate=sequences, precision="int8", target="cpu")
    found = export(model_source(str(checkpoint)).spec, tmp_path / "out", options).quality
    assert found is not None
    assert found.figures["cosine"] > 0.9995
    assert found.figures["same_neighbours"] > 0.97
