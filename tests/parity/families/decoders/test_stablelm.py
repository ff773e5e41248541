"""StableLM against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, LAYERS, VOCAB
from tests.parity.families.llamas import DYNAMIC, LLAMA3, LlamaTests

LINEAR = {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.5, "partial_rotary_factor": 0.5}
YARN = {
    "rope_type": "yarn", "rope_theta": 700.0, "factor": 4.0, "original_max_position_embeddings": 32,
    "partial_rotary_factor": 1.0,
}  # fmt: skip
PLAIN = {"rope_type": "default", "rope_theta": 300.0}


class TestStableLm(LlamaTests):
    model_class = hf.StableLmForCausalLM
    configs = {
        "odd-heads": dict(
            vocab_size=61, hidden_size=30, num_hidden_layers=3, num_attention_heads=3, num_key_value_heads=3,
            intermediate_size=17, hidden_act="gelu", layer_norm_eps=1e-3, use_qkv_bias=True,
            rope_parameters={"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.4},
        ),
        "parallel, norms per head": dict(
            vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            intermediate_size=70, layer_norm_eps=1e-6, qk_layernorm=True, use_parallel_residual=True,
            tie_word_embeddings=True, rope_parameters=LINEAR,
        ),
        "yarn": dict(
            vocab_size=83, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, num_key_value_heads=1,
            intermediate_size=33, qk_layernorm=True, use_qkv_bias=True, rope_parameters=YARN,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    of_others = ("parallel, norms per head",)
    refusals = (
        ("hidden_act", "sillu", "Did you mean 'silu'"),
        ("rope_parameters", {"rope_type": "lama3"}, "Did you mean 'llama3'"),
        ("rotary_scaling", 4, "unsupported fields"),
        ("architectures", ["StableLmForQuestionAnswering"], "must name a supported class"),
    )

    @staticmethod
    def draw(data):
        kv_heads, groups = data.draw(st.integers(1, 3), "kv_heads"), data.draw(st.integers(1, 3), "groups")
        width = data.draw(st.integers(4, 8), "head_dim")
        rotated = 2 * data.draw(st.integers(2, width // 2), "pairs")
        rope = data.draw(st.sampled_from([LINEAR, DYNAMIC, LLAMA3, YARN, PLAIN]), "rope")
        return dict(
            vocab_size=VOCAB, hidden_size=kv_heads * groups * width, num_hidden_layers=LAYERS,
            num_attention_heads=kv_heads * groups, num_key_value_heads=kv_heads, intermediate_size=HIDDEN,
            hidden_act=ACTIVATION, layer_norm_eps=st.sampled_from([1e-5, 1e-3, 1e-2]), use_qkv_bias=FLAG,
            qk_layernorm=FLAG, use_parallel_residual=FLAG, tie_word_embeddings=FLAG,
            rope_parameters={**rope, "partial_rotary_factor": (rotated + 0.5) / width},
        )  # fmt: skip
