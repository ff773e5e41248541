"""The tests of families whose configs have Llama's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, LAYERS, VOCAB, drawn
from tests.parity.families.family import SPECIAL, FamilyTests

LINEAR = {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.5}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1000.0, "factor": 3.0}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 5000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 700.0, "factor": 4.0, "original_max_position_embeddings": 32}
YARN_STATED = {**YARN, "beta_fast": 8.0, "beta_slow": 2.0, "attention_factor": 0.8, "truncate": False}
YARN_MSCALE = {**YARN, "mscale": 0.7, "mscale_all_dim": 0.9}
SCALINGS = (LINEAR, DYNAMIC, LLAMA3, YARN, YARN_STATED, YARN_MSCALE)

ALL = ("Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")


def rotation(theta: float, **more: float) -> dict[str, Any]:
    """Rotary positions without scaling."""
    return {"rope_type": "default", "rope_theta": theta, **more}


def draw_llama(data: st.DataObject) -> dict[str, Any]:
    """Any values of the fields that configs with Llama's names share; they come without head_dim and layers' kinds."""
    kv_heads, groups = data.draw(st.integers(1, 3), "kv_heads"), data.draw(st.integers(1, 3), "groups")
    default = rotation(data.draw(st.sampled_from([100.0, 1e4, 5e5]), "theta"))
    fields = dict(
        vocab_size=VOCAB, hidden_size=2 * kv_heads * groups * data.draw(st.integers(2, 5), "pairs in a head"),
        num_hidden_layers=LAYERS, num_attention_heads=kv_heads * groups, num_key_value_heads=kv_heads,
        intermediate_size=st.integers(8, 70), hidden_act=ACTIVATION, max_position_embeddings=256,
        tie_word_embeddings=FLAG, rope_parameters=st.sampled_from([default, *SCALINGS]),
    )  # fmt: skip
    return drawn(data, fields)


class LlamaTests(FamilyTests):
    """A family whose config has Llama's names; ``draws`` are its other fields.

    The slow tests export it: its graph is of the same parts.
    """

    defaults = {**SPECIAL, "max_position_embeddings": 128}
    quick = {"onnx": False}

    @classmethod
    def draw(cls, data: st.DataObject) -> Mapping[str, Any]:
        return {**draw_llama(data), **cls.draws}
