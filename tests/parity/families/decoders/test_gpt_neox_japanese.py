"""GPT-NeoX-Japanese against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, EPS, FLAG, LAYERS, VOCAB
from tests.parity.families.llamas import LlamaTests, rotation

LAST = "{query: false, key: false, value: false, output: true}"
BLOCK = (
    "decoder.block={kind: pre_norm, norm: {kind: layer_norm, eps: 1.0e-5}, attention: {kind: multi_head, heads: 64, bias: false},"
    " feed_forward: {kind: mlp, hidden: 24576, activation: gelu, bias: false}}"
)


class TestGPTNeoXJapanese(LlamaTests):
    model_class = hf.GPTNeoXJapaneseForCausalLM
    configs = {
        "odd heads": dict(
            vocab_size=61, hidden_size=30, num_hidden_layers=3, num_attention_heads=3, intermediate_multiple_size=2,
            hidden_act="relu", layer_norm_eps=1e-3, max_position_embeddings=64,
            rope_parameters={**rotation(500.0), "partial_rotary_factor": 0.4},
        ),
        "one layer, untied": dict(
            vocab_size=40, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_multiple_size=3,
            max_position_embeddings=64, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (("intermediate_multiple_size", "four", "must be a whole number"),)
    preset = "gpt-neox-20b"
    no_field = (
        (BLOCK, "a bias after the attention of other layers than the last"),
        (
            ["decoder.layers=1", BLOCK.replace("24576", "100").replace("bias: false},", f"bias: {LAST}}},")],
            "feed_forward.hidden 100: it follows from a whole intermediate_multiple_size of the width",
        ),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 5), "heads")
        return dict(
            vocab_size=VOCAB, num_hidden_layers=LAYERS, num_attention_heads=heads,
            hidden_size=heads * 2 * data.draw(st.integers(1, 6), "pairs"), intermediate_multiple_size=st.integers(1, 4),
            hidden_act=ACTIVATION, layer_norm_eps=EPS, max_position_embeddings=64, tie_word_embeddings=FLAG,
        )  # fmt: skip
