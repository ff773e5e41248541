"""Rerankers that read their score off a decoder: PyTorch, exports and converted checkpoints score as sentence-transformers do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
import transformers as hf
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder.modules import LogitScore, Transformer
from torch import Tensor

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from tests.parity.reference import assert_close, load, redraw
from tests.parity.test_sentence_families import SHAPE, tokenizer
from tests.thinned import one_in
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec

PAIRS = [("a man", "is playing the guitar on stage"), ("a cat", "my cat sleeps"), ("stage", "cat")]
MODELS = {
    "qwen3": (hf.Qwen3ForCausalLM, hf.Qwen3Config(**SHAPE, num_key_value_heads=2, head_dim=8, tie_word_embeddings=True)),
    "mistral": (hf.MistralForCausalLM, hf.MistralConfig(**SHAPE, num_key_value_heads=2)),
}  # fmt: skip


def saved(family: str, tokens: tuple[int, int | None], directory: Path) -> Path:
    """A directory that sentence-transformers writes for a tiny decoder that scores by some tokens."""
    model_class, config = MODELS[family]
    decoder = model_class(config).eval()
    redraw(decoder, 1)
    decoder.save_pretrained(directory / "decoder")
    tokenizer("right").save_pretrained(directory / "decoder")
    body = Transformer(str(directory / "decoder"), transformer_task="text-generation")
    CrossEncoder(modules=[body, LogitScore(*tokens)], device="cpu").save(str(directory / "saved"))
    return directory / "saved"


def theirs(directory: Path) -> tuple[Tensor, Any]:
    """The scores that sentence-transformers gives the pairs in one padded batch, B, and the batch."""
    model = CrossEncoder(str(directory), device="cpu")
    scores = model.predict(PAIRS, activation_fn=torch.nn.Identity(), convert_to_tensor=True)
    return scores.reshape(-1), model.preprocess(PAIRS)


@pytest.mark.parametrize(
    ("family", "tokens"),
    [
        ("qwen3", (5, 9)),
        pytest.param("qwen3", (14, None), marks=pytest.mark.slow),
        pytest.param("mistral", (5, 9), marks=pytest.mark.slow),
    ],
)
def test_the_scores_of_padded_pairs(family: str, tokens: tuple[int, int | None], tmp_path: Path) -> None:
    directory = saved(family, tokens, tmp_path)
    expected, batch = theirs(directory)
    assert batch["attention_mask"][2, 0] == 0, "padded on the left"
    spec = import_spec(directory)
    with torch.no_grad():
        ours = load(spec, directory)(batch["input_ids"], batch["attention_mask"]).logits
    assert_close(ours[:, 0], expected)

    export(spec, tmp_path / "onnx", ExportOptions(target="cpu", weights=str(directory)))
    session = onnxruntime.InferenceSession(tmp_path / "onnx" / "model.onnx")
    given = {name.name: batch[name.name].numpy() for name in session.get_inputs()}
    (found,) = session.run(["logits"], given)
    assert_close(torch.from_numpy(found)[:, 0], expected)

    (tmp_path / "back").mkdir()
    written = convert(spec, str(directory), tmp_path / "back")
    assert written.class_name.endswith("ForSequenceClassification")
    assert_close(theirs(tmp_path / "back")[0], expected)


@one_in(2)
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("1_LogitScore/config.json", {"module_input_name": "logits"}, 'module_input_name: must be "causal_logits"'),
        ("1_LogitScore/config.json", {"true_token_id": None}, "true_token_id: is required"),
        ("1_LogitScore/config.json", {"true_token_id": 15}, "vocab_size: must be above true_token_id of LogitScore, which is 15"),
        ("sentence_bert_config.json", {"transformer_task": "fill-mask"}, 'transformer_task: must be "text-generation"'),
        ("config.json", {"model_type": "bert"}, "model_type: must be a family of decoders with a score of the last token"),
        ("config.json", {"model_type": "gemma2"}, "whose head is a matrix alone for LogitScore, and its head has softcap"),
    ],
)  # fmt: skip
def test_scores_that_no_classifier_expresses_are_refused(
    name: str, value: dict[str, Any], message: str, tmp_path: Path
) -> None:
    directory = saved("qwen3", (5, 9), tmp_path)
    fields = json.loads((directory / name).read_text())
    (directory / name).write_text(json.dumps({**fields, **value}))
    with pytest.raises(UserError) as refused:
        import_spec(directory)
    assert message in str(refused.value)


def test_rows_beyond_the_matrix_are_refused(tmp_path: Path) -> None:
    directory = saved("qwen3", (5, 9), tmp_path)
    spec = import_spec(directory)
    (directory / "1_LogitScore/config.json").write_text(json.dumps({"true_token_id": 20}))
    with pytest.raises(UserError, match="has 15 rows, and LogitScore reads row 20"):
        load(spec, directory)
