"""Checkpoints of encoders as older releases and other heads left them: tensors more, fewer, or under other names."""

from __future__ import annotations

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

from tests.parity.families.encoders import (
    test_albert,
    test_bert,
    test_distilbert,
    test_electra,
    test_modernbert,
    test_roberta,
)
from tests.parity.families.vision import test_clip
from tests.parity.reference import assert_close, build, load, ragged
from zoo.configs.importing import import_spec

BERT = test_bert.TestBert.configured()
ROBERTA = test_roberta.TestRoberta.configured()
DISTILBERT = test_distilbert.TestDistilBert.configured()
ELECTRA = test_electra.TestElectra.configured()
ALBERT = test_albert.TestAlbert.configured()
MODERNBERT = test_modernbert.TestModernBert.configured()
CLIP = test_clip.TestClipText.configured()

# model, what is stored under another name, what is stored besides
FILES = {
    "bert, named by TensorFlow": (
        hf.BertModel, BERT, {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"},
        ("embeddings.position_ids", "embeddings.token_type_ids"),
    ),
    "bert with a prefix and its first heads": (
        hf.BertModel, BERT, {"": "bert."},
        ("cls.predictions.bias", "cls.predictions.decoder.weight", "cls.seq_relationship.weight"),
    ),
    "bert with the scores' bias as it was": (
        hf.BertForMaskedLM, BERT, {},
        ("cls.seq_relationship.weight", "cls.seq_relationship.bias", "bert.pooler.dense.weight"),
    ),
    "roberta with a pooler beside its scores": (
        hf.RobertaForMaskedLM, ROBERTA, {}, ("roberta.pooler.dense.weight", "roberta.embeddings.position_ids"),
    ),
    "the body of a roberta with scores": (
        hf.RobertaModel, ROBERTA, {"": "roberta."}, ("lm_head.bias", "lm_head.dense.weight"),
    ),
    "the body of a distilbert with scores": (
        hf.DistilBertModel, DISTILBERT, {"": "distilbert."}, ("vocab_projector.bias", "vocab_transform.weight"),
    ),
    "the body of an electra that detects": (
        hf.ElectraModel, ELECTRA, {"": "electra."},
        ("discriminator_predictions.dense.weight", "electra.embeddings.position_ids"),
    ),
    "albert with its sentence order": (
        hf.AlbertForMaskedLM, ALBERT, {},
        ("albert.pooler.weight", "sop_classifier.classifier.weight", "albert.embeddings.position_ids"),
    ),
    "the body of a modernbert with scores": (
        hf.ModernBertModel, MODERNBERT, {"": "model."}, ("head.dense.weight", "decoder.bias"),
    ),
    "clip of older releases": (hf.CLIPTextModel, CLIP, {"": "text_model."}, ("text_model.embeddings.position_ids",)),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_is_read(name, tmp_path):
    model_class, config, renamed, besides = FILES[name]
    reference = build(model_class, config, seed=1)
    reference.save_pretrained(tmp_path)
    tensors = {}
    for stored, tensor in load_file(tmp_path / "model.safetensors").items():
        for ours, theirs in renamed.items():
            stored = stored.replace(ours, theirs) if ours else theirs + stored
        tensors[stored] = tensor
    assert not set(besides) & set(tensors)
    save_file(tensors | {extra: torch.ones(1) for extra in besides}, tmp_path / "model.safetensors")
    spec = import_spec(tmp_path)
    assert spec.vocab_size is not None
    ids, mask = ragged(3, 9, spec.vocab_size, "right", seed=2)
    ids = ids.where(ids > 1, 5).where(mask == 1, config.pad_token_id)
    with torch.no_grad():
        ours, theirs = load(spec, tmp_path)(ids, mask), reference(ids, attention_mask=mask)
    output = "logits" if "logits" in theirs else "last_hidden_state"
    assert_close(ours[output], theirs[output], mask)


@pytest.mark.parametrize(
    ("model_class", "config"), [(hf.BertModel, BERT), (hf.RobertaModel, ROBERTA), (hf.AlbertModel, ALBERT)]
)
def test_a_body_without_its_pooler_is_read_as_one(model_class, config, tmp_path):
    reference = model_class(config, add_pooling_layer=False).eval()
    reference.save_pretrained(tmp_path)
    spec = import_spec(tmp_path)
    assert spec.head.kind == "none"
    ids = torch.arange(5, 15)[None]
    with torch.no_grad():
        ours, theirs = load(spec, tmp_path)(ids), reference(ids)
    assert_close(ours.last_hidden_state, theirs.last_hidden_state)
