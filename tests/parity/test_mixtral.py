"""Mixtral against transformers, through the checkpoint that it writes."""

import pytest
import torch
from transformers import MixtralConfig, MixtralForCausalLM

from specs.model import Model
from tests.parity.reference import (
    assert_close,
    build,
    llama_spec,
    positions,
    ragged,
    step_through,
    through_checkpoint,
)


def mixtral_spec(config: MixtralConfig) -> Model:
    """As Llama's, with a mixture in place of the feed-forward."""
    config.attention_bias = config.mlp_bias = False
    data = llama_spec(config).model_dump()
    expert = data["decoder"]["block"]["feed_forward"]
    experts = {"experts": config.num_local_experts, "top_k": config.num_experts_per_tok}
    data["decoder"]["block"]["feed_forward"] = {"kind": "mixture", **experts, "expert": expert}
    return Model.model_validate(data)


@pytest.mark.parametrize("experts", [2, 5])
def test_logits_and_cached_steps(experts, tmp_path):
    config = MixtralConfig(
        vocab_size=61, hidden_size=24, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=6,
        intermediate_size=13, num_local_experts=experts, num_experts_per_tok=2, max_position_embeddings=64,
        sliding_window=None, rope_parameters={"rope_type": "default", "rope_theta": 500.0}, bos_token_id=0,
        eos_token_id=0,
    )  # fmt: skip
    config._experts_implementation = "eager"
    reference = build(MixtralForCausalLM, config, seed=3)
    model = through_checkpoint(reference, mixtral_spec(config), tmp_path)
    for side in ("right", "left"):
        ids, mask = ragged(3, 14, config.vocab_size, side, seed=4)
        with torch.no_grad():
            theirs = reference(ids, attention_mask=mask, position_ids=positions(mask)).logits
            assert_close(model(ids, mask).logits, theirs, mask)
            assert_close(step_through(model, ids, mask, prefill=5), theirs, mask)
