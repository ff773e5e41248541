"""Switch Transformers against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG, LAYERS, VOCAB
from tests.parity.families.family import FamilyTests


class TestSwitchTransformers(FamilyTests):
    model_class = hf.SwitchTransformersForConditionalGeneration
    configs = {
        "every other, every layer": dict(
            vocab_size=61, d_model=21, d_kv=5, d_ff=33, num_layers=4, num_decoder_layers=3, num_heads=3,
            num_sparse_encoder_layers=2, num_sparse_decoder_layers=3, num_experts=5, layer_norm_epsilon=1e-3,
            relative_attention_num_buckets=10, relative_attention_max_distance=17, expert_capacity=20,
        ),
        "biases": dict(
            vocab_size=50, d_model=32, d_kv=6, d_ff=20, num_layers=3, num_decoder_layers=1, num_heads=4,
            num_sparse_encoder_layers=1, num_sparse_decoder_layers=2, num_experts=2, router_bias=True,
            dense_act_fn="gelu_new",
        ),
    }  # fmt: skip
    heads = ("Model", "Model")
    refusals = (
        ("dense_act_fn", "gated-gelu", "is not supported"),
        ("router_dtype", "bfloat16", "routing is computed in float32"),
        ("tie_word_embeddings", False, "encoder and decoder have a table each"),
        ("is_decoder", True, "the decoder alone"),
    )

    draws = dict(
        vocab_size=VOCAB, d_model=st.integers(4, 40), d_kv=st.integers(2, 12), d_ff=st.integers(4, 40),
        num_layers=LAYERS, num_decoder_layers=LAYERS, num_sparse_encoder_layers=st.integers(0, 5),
        num_sparse_decoder_layers=st.integers(0, 5), num_heads=st.integers(1, 4), num_experts=st.integers(2, 6),
        router_bias=FLAG, dense_act_fn=st.sampled_from(["relu", "gelu_new"]),
    )  # fmt: skip
