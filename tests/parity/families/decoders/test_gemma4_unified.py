"""The text models of Gemma 4's unified sizes against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.decoders import test_gemma4
from tests.parity.families.decoders.test_gemma4 import FULL, SLIDING, proportional
from tests.parity.families.draws import EPS, VOCAB, WINDOW, lists
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import rotation


class TestGemma4Unified(FamilyTests):
    model_class = hf.Gemma4UnifiedForCausalLM
    others = ((hf.Gemma4UnifiedTextModel, {}),)
    configs = {
        "small": dict(
            vocab_size=61, hidden_size=30, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=1, head_dim=8,
            global_head_dim=16, intermediate_size=21, rms_norm_eps=1e-3, max_position_embeddings=128,
            layer_types=[SLIDING, FULL, SLIDING, FULL], sliding_window=4, num_kv_shared_layers=1,
            rope_parameters={FULL: proportional(0.25), SLIDING: rotation(70.0)},
        ),
        "keys are values": dict(
            vocab_size=47, hidden_size=33, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=3,
            num_global_key_value_heads=2, head_dim=10, global_head_dim=12, intermediate_size=37,
            max_position_embeddings=128, layer_types=[SLIDING, FULL, FULL], sliding_window=6, attention_k_eq_v=True,
            hidden_activation="silu", rope_parameters={FULL: proportional(0.6), SLIDING: rotation(300.0)},
        ),
    }  # fmt: skip
    refusals = (
        ("use_bidirectional_attention", "all", "must be"),
        ("rope_parameters", {FULL: {"rope_type": "proportiona"}}, "Did you mean 'proportional'?"),
    )
    prepare = staticmethod(test_gemma4.TestGemma4.prepare)
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        kv_heads, layers = (
            data.draw(st.integers(1, 2), "kv_heads"),
            data.draw(st.integers(1, 4), "layers before the last"),
        )
        return dict(
            vocab_size=VOCAB, hidden_size=st.integers(8, 40), num_hidden_layers=layers + 1, num_key_value_heads=kv_heads,
            num_attention_heads=kv_heads * data.draw(st.integers(1, 3), "groups"), intermediate_size=st.integers(1, 40),
            head_dim=2 * data.draw(st.integers(2, 6), "pairs"), global_head_dim=2 * data.draw(st.integers(2, 8), "global pairs"),
            layer_types=[*data.draw(lists([FULL, SLIDING], layers), "kinds"), FULL], sliding_window=WINDOW, rms_norm_eps=EPS,
            max_position_embeddings=256, rope_parameters={FULL: proportional(0.5), SLIDING: rotation(70.0)},
        )  # fmt: skip
