"""The fields that are kept of the reference are those that it has."""

from __future__ import annotations

import pytest

from tests.parity.reference_fields import fields_of, shared_fields, text_of_fields
from zoo.families.common.reference_fields import FILE
from zoo.families.registry import MODEL_TYPES


def test_stored_fields_equal_the_fields_of_the_reference() -> None:
    assert FILE.read_text(encoding="utf-8") == text_of_fields(), "run python -m tests.parity.reference_fields"


@pytest.mark.parametrize(
    ("model_type", "field"),
    [
        ("llama", "mlp_bias"),  # defined
        ("falcon", "multi_query"),
        ("gpt2", "n_embd"),
        ("gpt2", "scale_attn_by_inverse_layer_idx"),
        ("deepseek_v3", "num_local_experts"),  # under another name
        ("bert", "add_cross_attention"),  # read by the model alone
    ],
)
def test_fields_of_families(model_type: str, field: str) -> None:
    assert field in fields_of(model_type)


def test_foreign_fields_belong_to_no_family() -> None:
    foreign = {
        "_model_name_or_path", "unsloth_fixed", "transformers.js_config", "unsloth_version", "sliding_windw",
    }  # fmt: skip
    assert not foreign & shared_fields()
    for model_type in MODEL_TYPES:
        assert not foreign & fields_of(model_type)
