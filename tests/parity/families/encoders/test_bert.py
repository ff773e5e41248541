"""BERT against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.encoder_tests import EncoderTests, draw_bert

CONFIGS = {
    "odd heads": dict(
        vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
        hidden_act="gelu_new", layer_norm_eps=1e-3, type_vocab_size=3, max_position_embeddings=23,
    ),
    "one layer": dict(
        vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
        hidden_act="relu", layer_norm_eps=1e-6, type_vocab_size=1, max_position_embeddings=19,
    ),
    "exact gelu": dict(
        vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
        hidden_act="gelu", layer_norm_eps=1e-12, type_vocab_size=2, max_position_embeddings=31,
    ),
}  # fmt: skip


class TestBert(EncoderTests):
    model_class = hf.BertForMaskedLM
    configs = {
        f"{name}, {'tied' if tied else 'untied'}": {**values, "tie_word_embeddings": tied}
        for name, values in CONFIGS.items()
        for tied in (True, False)
    }
    refusals = (
        ("type_vocab_size", 0, "must be 1 or more"),
        ("position_embedding_type", "relative_key", 'must be "absolute"'),
        ("is_decoder", True, "must be false"),
        ("add_cross_attention", True, "must be false"),
        ("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("architectures", ["BertForPretraining"], "Did you mean 'BertForPreTraining'"),
        ("use_sparse_attention", True, "unsupported fields"),
    )
    draw = staticmethod(draw_bert)
