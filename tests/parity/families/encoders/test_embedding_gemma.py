"""The body of EmbeddingGemma, Gemma 3 whose tokens see each other both ways, against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import draw_llama, rotation
from tests.parity.families.sizes import GROUPED
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

FULL, SLIDING = "full_attention", "sliding_attention"


class TestEmbeddingGemma(FamilyTests):
    model_class = hf.Gemma3TextModel
    configs = {
        "windows": dict(
            GROUPED, hidden_size=30, head_dim=10, max_position_embeddings=128, sliding_window=4,
            layer_types=[SLIDING, FULL, SLIDING], use_bidirectional_attention=True,
            rope_parameters={FULL: rotation(500.0), SLIDING: rotation(70.0)},
        ),
        "wide window, biases": dict(
            vocab_size=47, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
            head_dim=8, intermediate_size=50, max_position_embeddings=128, sliding_window=10, attention_bias=True,
            layer_types=[FULL, SLIDING], use_bidirectional_attention=True, query_pre_attn_scalar=7,
            rope_parameters={FULL: rotation(500.0), SLIDING: rotation(70.0)},
        ),
    }  # fmt: skip
    options = {"length": 17}
    refusals = (("attn_logit_softcapping", 1.0, "must be null"),)

    @staticmethod
    def draw(data):
        fields = draw_llama(data)
        del fields["hidden_act"], fields["rope_parameters"]
        return fields | dict(
            head_dim=HEAD_DIM, rms_norm_eps=EPS, attention_bias=FLAG, use_bidirectional_attention=True,
            sliding_window=st.sampled_from([2, 4, 8]), query_pre_attn_scalar=st.integers(4, 64),
        )  # fmt: skip


def test_it_is_an_encoder():
    data = TestEmbeddingGemma.configured().to_dict() | {"architectures": ["Gemma3TextModel"]}
    spec = spec_of_config(Config(data, "config.json"), name="tiny")
    assert spec.architecture == "encoder"
    assert not spec.is_causal("encoder")
    assert spec.encoder.layer_blocks()[0].attention.window == 4
