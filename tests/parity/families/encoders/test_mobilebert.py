"""MobileBERT against transformers, which takes the vectors of padding tokens for neighbours: they are zeros here."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG, HIDDEN, LAYERS, VOCAB
from tests.parity.families.encoder_tests import EncoderTests


def zero_padding(reference: Any, seed: int) -> None:
    with torch.no_grad():
        table = reference.get_input_embeddings()
        table.weight[table.padding_idx] = 0


class TestMobileBert(EncoderTests):
    model_class = hf.MobileBertForMaskedLM
    defaults = {"pad_token_id": 0}
    prepare = staticmethod(zero_padding)
    configs = {
        "odd heads": dict(
            vocab_size=61, hidden_size=26, embedding_size=10, intra_bottleneck_size=21, num_hidden_layers=3,
            num_attention_heads=3, intermediate_size=17, num_feedforward_networks=3, max_position_embeddings=23,
        ),
        "one feed-forward": dict(
            vocab_size=33, hidden_size=40, embedding_size=16, intra_bottleneck_size=20, num_hidden_layers=1,
            num_attention_heads=5, intermediate_size=96, num_feedforward_networks=1, hidden_act="gelu",
            layer_norm_eps=1e-3, type_vocab_size=3, max_position_embeddings=19, classifier_activation=False,
        ),
    }  # fmt: skip
    of_others = tuple(configs)
    refusals = (
        ("use_bottleneck_attention", True, "values are as wide as the residual stream"),
        ("normalization_type", "layer_norm", "an eps that no field states"),
        ("trigram_input", False, "the tokens beside each token"),
    )

    @staticmethod
    def draw(data):
        heads, width = data.draw(st.integers(1, 4), "heads"), data.draw(st.integers(2, 12), "embedding_size")
        return dict(
            vocab_size=VOCAB, embedding_size=width, hidden_size=width + data.draw(st.integers(1, 20), "wider"),
            intra_bottleneck_size=heads * data.draw(st.integers(2, 8), "head_dim"), num_hidden_layers=LAYERS,
            num_attention_heads=heads, intermediate_size=HIDDEN, num_feedforward_networks=st.integers(1, 4),
            classifier_activation=FLAG, max_position_embeddings=st.integers(1, 40),
        )  # fmt: skip
