"""Switch Transformers against transformers."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import (
    SwitchTransformersConfig,
    SwitchTransformersEncoderModel,
    SwitchTransformersForConditionalGeneration,
    SwitchTransformersModel,
)

from tests.parity.families.family import FamilyTests
from tests.parity.families.mixtures import check


class TestSwitchTransformers(FamilyTests):
    model_class = SwitchTransformersForConditionalGeneration
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
    check = staticmethod(check)
    others = [(SwitchTransformersModel, {}), (SwitchTransformersEncoderModel, {})]
    refusals = (
        ("dense_act_fn", "gated-gelu", "is not supported"),
        ("router_dtype", "bfloat16", "routing is computed in float32"),
        ("tie_word_embeddings", False, "encoder and decoder have a table each"),
        ("is_decoder", True, "the decoder alone"),
    )

    @staticmethod
    def config(**values) -> SwitchTransformersConfig:
        return SwitchTransformersConfig(**values)

    @staticmethod
    def draw(data):
        return {
            "vocab_size": data.draw(st.integers(5, 90), "vocab_size"),
            "d_model": data.draw(st.integers(4, 40), "d_model"),
            "d_kv": data.draw(st.integers(2, 12), "d_kv"),
            "d_ff": data.draw(st.integers(4, 40), "d_ff"),
            "num_layers": data.draw(st.integers(1, 4), "layers"),
            "num_decoder_layers": data.draw(st.integers(1, 4), "decoder layers"),
            "num_sparse_encoder_layers": data.draw(st.integers(0, 5), "encoder mixtures"),
            "num_sparse_decoder_layers": data.draw(st.integers(0, 5), "decoder mixtures"),
            "num_heads": data.draw(st.integers(1, 4), "heads"),
            "num_experts": data.draw(st.integers(2, 6), "experts"),
            "router_bias": data.draw(st.booleans(), "router_bias"),
            "dense_act_fn": data.draw(st.sampled_from(["relu", "gelu_new"]), "activation"),
        }
