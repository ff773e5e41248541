"""Exports of sentence-transformers checkpoints are used as that library uses the checkpoint."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

from exporters.export import export
from exporters.runtime.encoding import EncoderRunner
from exporters.runtime.exported import open_export
from exporters.runtime.sentences import SentenceUsage
from exporters.runtime.text import find_text
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from tests.parity.minilm import SENTENCES, minilm_directory
from tests.parity.reference import redraw
from tests.thinned import one_in
from zoo.configs.importing import import_spec

TEXTS = [*SENTENCES[:2], "A Guitar " * 30]


def sentence_encoder(directory: Path) -> SentenceTransformer:
    """A BERT of one layer and width 12 with MiniLM's tokenizer, and vectors of length 1."""
    config = transformers.BertConfig(
        hidden_size=12, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    body = transformers.BertModel(config).eval()
    redraw(body, 0)
    body.save_pretrained(directory / "body")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(minilm_directory() / name, directory / "body" / name)
    modules = [Transformer(str(directory / "body")), Pooling(12, "mean"), Normalize()]
    return SentenceTransformer(modules=modules, device="cpu").eval()


@one_in(2)
@pytest.mark.parametrize("module_files", [False, True], ids=["limit of the tokenizer", "limit of the module"])
def test_an_export_is_used_as_the_checkpoint_says(tmp_path: Path, module_files: bool) -> None:
    """Texts are cut, and read after the default prompt in lower case, and vectors are cut, as sentence-transformers does."""
    directory, model = tmp_path / "saved", sentence_encoder(tmp_path)
    model.max_seq_length = 9
    model.prompts, model.default_prompt_name = {"query": "Find: "}, "query"
    model.truncate_dim = 5
    model.save(str(directory))
    if module_files:
        settings = json.loads((directory / "sentence_bert_config.json").read_text())
        settings |= {"max_seq_length": 7, "do_lower_case": True}
        (directory / "sentence_bert_config.json").write_text(json.dumps(settings))
    expected = SentenceTransformer(str(directory), device="cpu").encode(TEXTS)
    export(import_spec(directory), tmp_path / "onnx", ExportOptions(weights=str(directory)))
    exported = open_export(tmp_path / "onnx")
    tokenizer = find_text(tmp_path / "onnx", None, needed=True)
    assert tokenizer is not None
    tokenizer.use(exported.sentences)
    ids = tokenizer.ids(TEXTS)
    found = EncoderRunner(exported).vectors(ids).values
    assert tokenizer.cut >= 1
    assert max(map(len, ids)) == (7 if module_files else 9)
    assert found.shape == expected.shape == (3, 5)
    assert np.abs(found - expected).max() <= 1e-5


@pytest.mark.parametrize(
    ("file", "field", "value", "rule"),
    [
        ("sentence_bert_config.json", "max_seq_length", 0, "a whole number, 1 or more"),
        ("sentence_bert_config.json", "do_lower_case", "yes", "true or false"),
        ("config_sentence_transformers.json", "truncate_dim", -3, "a whole number, 1 or more"),
        ("config_sentence_transformers.json", "prompts", ["query: "], "texts by their names"),
        ("config_sentence_transformers.json", "default_prompt_name", "query", "one of document"),
    ],
)
def test_wrong_usage_is_refused(tmp_path: Path, file: str, field: str, value: Any, rule: str) -> None:
    (tmp_path / file).write_text(json.dumps({"prompts": {"document": ""}, field: value}))
    with pytest.raises(UserError) as caught:
        SentenceUsage.beside(tmp_path, 512)
    assert f"{tmp_path / file}: {field} must be {rule}\n  value: {value!r}" in str(caught.value)
