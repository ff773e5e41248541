"""What the tests of the families that follow Llama have in common."""

from __future__ import annotations

from typing import Any

import transformers
from hypothesis import strategies as st

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

SPECIAL = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
"""Tokens of the vocabularies of tests, where the usual ones are beyond it."""


def rotation(theta: float) -> dict[str, Any]:
    """Rotary positions without scaling."""
    return {"rope_type": "default", "rope_theta": theta}


def classes(prefix: str, *names: str) -> list[type]:
    """The classes of a family beside that for language modeling."""
    return [getattr(transformers, f"{prefix}{name}") for name in names]


ALL = ("Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")


def labels(model_class: type) -> dict[str, Any]:
    """How many labels a head has: answers have a start and an end."""
    return {"num_labels": 2 if model_class.__name__.endswith("QuestionAnswering") else 5}


def draw_llama(data: st.DataObject) -> dict[str, Any]:
    """Any values of the fields that configs with Llama's names share; they come without head_dim and layers' kinds."""
    kv_heads, groups = data.draw(st.integers(1, 3), "kv_heads"), data.draw(st.integers(1, 3), "groups")
    default = rotation(data.draw(st.sampled_from([100.0, 1e4, 5e5]), "theta"))
    return dict(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        hidden_size=2 * kv_heads * groups * data.draw(st.integers(2, 5), "pairs in a head"),
        num_hidden_layers=data.draw(st.integers(1, 4), "layers"),
        num_attention_heads=kv_heads * groups,
        num_key_value_heads=kv_heads,
        intermediate_size=data.draw(st.integers(8, 70), "hidden"),
        hidden_act=data.draw(st.sampled_from(["gelu", "gelu_new", "relu", "silu"]), "activation"),
        max_position_embeddings=256,
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
        rope_parameters=dict(data.draw(st.sampled_from([default, *SCALINGS]), "rope")),
        **SPECIAL,
    )


EPS = st.sampled_from([1e-6, 1e-5, 1e-2])


def draw_head_dim(data: st.DataObject) -> int:
    """The width of a head, whatever hidden_size is."""
    return 2 * data.draw(st.integers(2, 12), "head_dim / 2")
