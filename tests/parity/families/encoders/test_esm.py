"""ESM-1b, ESM-1v and ESM-2 against transformers."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from hypothesis import strategies as st
from safetensors.torch import save_file

from tests.parity.families.draws import FLAG, HIDDEN, LAYERS, VOCAB
from tests.parity.families.encoder_tests import EPS, EncoderTests
from tests.parity.reference import assert_close, build, load
from zoo.configs.importing import import_spec


def prepare(reference: hf.PreTrainedModel, seed: int) -> None:
    """As in the released checkpoints, whose frequencies are rounded to float16."""
    for module in reference.modules():
        if isinstance(getattr(module, "inv_freq", None), torch.Tensor):
            module.inv_freq.copy_(module.inv_freq.half())


def test_names_of_earlier_releases(tmp_path):
    """Each layer held the frequencies, and they count, rounded as they are."""
    reference = build(hf.EsmForMaskedLM, TestEsm.configured("ESM-2", rope_theta=10000.0), 1)
    prepare(reference, 1)
    reference.save_pretrained(tmp_path)
    tensors = {
        name: tensor
        for name, tensor in reference.state_dict().items()
        if not name.startswith("esm.rotary") and name != "lm_head.decoder.weight"
    }
    layers = [f"esm.encoder.layer.{layer}.attention.self.rotary_embeddings.inv_freq" for layer in range(3)]
    frequencies: Any = reference.esm.rotary_embeddings.inv_freq
    tensors |= {name: frequencies.clone() for name in layers}
    tensors["esm.embeddings.position_ids"] = torch.arange(23)[None]
    tensors["esm.embeddings.position_embeddings.weight"] = torch.zeros(23, 36)
    save_file(tensors, tmp_path / "model.safetensors")
    ours: Any = load(import_spec(tmp_path), tmp_path)
    ids = torch.tensor([[0, 5, 4, 9, 20, 2, 7, 8, 11, 12, 3]])
    assert torch.equal(ours.encoder.position.stored, frequencies)
    with torch.no_grad():
        assert_close(ours(ids).logits, reference(ids).logits)


class TestEsm(EncoderTests):
    model_class = hf.EsmForMaskedLM
    defaults = dict(pad_token_id=1, mask_token_id=4)
    configs = {
        "ESM-2": dict(
            vocab_size=21, hidden_size=36, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
            layer_norm_eps=1e-3, max_position_embeddings=23, position_embedding_type="rotary", rope_theta=500.0,
            token_dropout=True,
        ),
        "ESM-1b": dict(
            vocab_size=13, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
            max_position_embeddings=31, emb_layer_norm_before=True, token_dropout=True,
        ),
        "untied": dict(
            vocab_size=33, hidden_size=20, num_hidden_layers=1, num_attention_heads=5, intermediate_size=9,
            position_embedding_type="rotary", emb_layer_norm_before=True, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    options = dict(position_ids=False, without=("contact_head", "esm.contact_head"))
    prepare = staticmethod(prepare)
    refusals = (
        ("position_embedding_type", "relative_key", "is not supported"),
        ("position_embedding_type", None, "the reference has no positions with null"),
        ("mask_token_id", None, "is required"),
        ({"mask_token_id": 21}, "mask_token_id: must be below vocab_size, which is 21"),
        ("is_decoder", True, "must be false"),
        ("is_folding_model", True, "the structure module of ESMFold"),
        ("architectures", ["EsmForProteinFolding"], "the structure module of ESMFold"),
    )

    no_field = (
        ("embedding.token_dropout.rate=0.2", "embedding.token_dropout.rate: 0.2"),
        ("position.frequencies=computed", "position.frequencies"),
    )
    preset = "esm2-8m"

    @staticmethod
    def draw(data):
        heads, kind = (
            data.draw(st.integers(1, 5), "heads"),
            data.draw(st.sampled_from(["absolute", "rotary"]), "kind"),
        )
        return dict(
            vocab_size=VOCAB, hidden_size=heads * 2 * data.draw(st.integers(2, 6), "pairs"), num_hidden_layers=LAYERS,
            num_attention_heads=heads, intermediate_size=HIDDEN, layer_norm_eps=EPS,
            max_position_embeddings=st.integers(5, 40), rope_theta=st.sampled_from([50.0, 10000.0]) if kind == "rotary" else 10000.0,
            position_embedding_type=kind, token_dropout=FLAG,
            emb_layer_norm_before=FLAG, tie_word_embeddings=FLAG,
        )  # fmt: skip
