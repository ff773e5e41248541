"""OPT against transformers."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from transformers import (
    OPTConfig,
    OPTForCausalLM,
    OPTForQuestionAnswering,
    OPTForSequenceClassification,
    OPTModel,
)

from tests.parity.families.family import FamilyTests
from tests.parity.families.refusals import refused

CONFIGS: dict[str, dict[str, Any]] = {
    "odd-heads": dict(
        vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, ffn_dim=17,
        activation_function="gelu",
    ),
    "350m": dict(
        vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=70,
        word_embed_proj_dim=12, do_layer_norm_before=False,
    ),
    "no biases, no weights in norms": dict(
        vocab_size=83, hidden_size=20, num_hidden_layers=2, num_attention_heads=5, ffn_dim=33,
        enable_bias=False, layer_norm_elementwise_affine=False, tie_word_embeddings=False,
    ),
    "no final norm": dict(
        vocab_size=83, hidden_size=20, num_hidden_layers=2, num_attention_heads=5, ffn_dim=33,
        word_embed_proj_dim=25, _remove_final_layer_norm=True, tie_word_embeddings=False,
    ),
}  # fmt: skip


def config_of(**values) -> OPTConfig:
    return OPTConfig(
        **values, max_position_embeddings=29, bos_token_id=0, eos_token_id=0, pad_token_id=0, num_labels=4
    )


REFUSED = {
    "activation_function": ("rellu", "Did you mean 'relu'"),
    "num_key_value_heads": (1, "unsupported fields"),
    "architectures": (["OPTForTokenClassification"], "must name a supported class"),
}


def test_a_projection_after_the_last_layer():
    config = config_of(**CONFIGS["odd-heads"])
    config.architectures = ["OPTModel"]
    refused(
        config,
        "word_embed_proj_dim",
        12,
        "only in OPTForCausalLM\n  value: 12\n  Set architectures to OPTForCausalLM.",
    )


class TestOPT(FamilyTests):
    model_class = OPTForCausalLM
    configs = CONFIGS
    config = staticmethod(config_of)
    others = [(each, {}) for each in [OPTModel, OPTForSequenceClassification, OPTForQuestionAnswering]]
    of_others = "odd-heads"
    refusals = [(field, *REFUSED[field]) for field in REFUSED]
    of_refusals = "odd-heads"

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 7), "heads")
        return dict(
            vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
            hidden_size=heads * data.draw(st.integers(3, 9), "head_dim"),
            num_hidden_layers=data.draw(st.integers(1, 4), "layers"),
            num_attention_heads=heads,
            ffn_dim=data.draw(st.integers(1, 70), "hidden"),
            word_embed_proj_dim=data.draw(st.none() | st.integers(3, 40), "embedding width"),
            activation_function=data.draw(
                st.sampled_from(["gelu", "gelu_new", "relu", "silu"]), "activation"
            ),
            do_layer_norm_before=data.draw(st.booleans(), "before"),
            _remove_final_layer_norm=data.draw(st.booleans(), "removed"),
            enable_bias=data.draw(st.booleans(), "bias"),
            layer_norm_elementwise_affine=data.draw(st.booleans(), "affine"),
            tie_word_embeddings=data.draw(st.booleans(), "tied"),
        )
