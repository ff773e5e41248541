"""DeepSeek-V2 and V3 against transformers, through the checkpoints that they write."""

import math

import pytest
import torch
from transformers import DeepseekV2Config, DeepseekV2ForCausalLM, DeepseekV3Config, DeepseekV3ForCausalLM

from specs.model import Model
from tests.parity.reference import assert_close, build, positions, ragged, step_through, through_checkpoint

SIZES = dict(
    vocab_size=50, hidden_size=24, intermediate_size=20, moe_intermediate_size=9, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=4, n_shared_experts=2, n_routed_experts=8, num_experts_per_tok=3,
    routed_scaling_factor=1.5, kv_lora_rank=10, q_lora_rank=14, qk_rope_head_dim=6, qk_nope_head_dim=8, v_head_dim=7,
    n_group=4, topk_group=2, first_k_dense_replace=1, max_position_embeddings=64, rms_norm_eps=1e-5,
    bos_token_id=0, eos_token_id=0, pad_token_id=None,
)  # fmt: skip
ROPE = {"rope_type": "default", "rope_theta": 300.0}
YARN = {
    "rope_type": "yarn", "rope_theta": 300.0, "factor": 4.0, "original_max_position_embeddings": 16,
    "mscale": 0.8, "mscale_all_dim": 1.2, "beta_fast": 32, "beta_slow": 1,
}  # fmt: skip


def yarn(rope: dict, width: int) -> tuple[dict, float | None]:
    """The scaling of a spec, and the scale of its attention: mscale is in the first, mscale_all_dim in both."""
    if rope["rope_type"] == "default":
        return {}, None

    def amplitude(mscale: float) -> float:
        return 0.1 * mscale * math.log(rope["factor"]) + 1

    scaling = {"kind": "yarn", "factor": rope["factor"], "original_context_length": 16}
    factor = amplitude(rope["mscale"]) / amplitude(rope["mscale_all_dim"])
    scale = width**-0.5 * amplitude(rope["mscale_all_dim"]) ** 2
    return {"scaling": {**scaling, "attention_factor": factor}}, scale


def spec_of(config, router: dict) -> Model:
    swiglu = {"kind": "gated", "hidden": config.intermediate_size, "activation": "silu", "bias": False}
    scaling, scale = yarn(config.rope_parameters, config.qk_nope_head_dim + config.qk_rope_head_dim)
    norm = {"kind": "rms_norm", "eps": config.rms_norm_eps}
    hidden = config.moe_intermediate_size
    mixture = {
        "kind": "mixture",
        "experts": config.n_routed_experts,
        "top_k": config.num_experts_per_tok,
        "expert": {**swiglu, "hidden": hidden},
        "shared": {**swiglu, "hidden": config.n_shared_experts * hidden},
        "router": {"scale": config.routed_scaling_factor, **router},
    }
    block = {
        "kind": "pre_norm",
        "norm": norm,
        "attention": {
            "kind": "latent",
            "heads": config.num_attention_heads,
            "query_rank": config.q_lora_rank,
            "kv_rank": config.kv_lora_rank,
            "head_dim": config.qk_nope_head_dim,
            "rope_dim": config.qk_rope_head_dim,
            "value_dim": config.v_head_dim,
            "norm": {"kind": "rms_norm", "eps": 1e-6},
            "bias": config.attention_bias,
            "scale": scale,
        },
        "feed_forward": swiglu,
    }
    layers = [{"repeat": 1}, {"use": "mixture", "repeat": config.num_hidden_layers - 1}]
    return Model.model_validate(
        {
            "name": "tiny-deepseek",
            "architecture": "decoder",
            "vocab_size": config.vocab_size,
            "d_model": config.hidden_size,
            "context_length": config.max_position_embeddings,
            "position": {
                "kind": "rope",
                "theta": config.rope_parameters["rope_theta"],
                "layout": "interleaved",
                **scaling,
            },
            "decoder": {
                "layers": layers,
                "block": block,
                "blocks": {"mixture": {**block, "feed_forward": mixture}},
            },
            "head": {"kind": "language_modeling", "tie_embeddings": False},
        }
    )


V2 = (DeepseekV2ForCausalLM, DeepseekV2Config, {"normalize": False})
V2_GROUPS = {"topk_method": "group_limited_greedy"}
V3_ROUTER = {"scores": "sigmoid", "correction": True, "groups": {"count": 4, "top": 2, "best": 2}}
V3 = (DeepseekV3ForCausalLM, DeepseekV3Config, V3_ROUTER)
CASES = {
    "v2, greedy, no query rank": (
        *V2,
        {"q_lora_rank": None, "topk_method": "greedy", "rope_parameters": ROPE},
    ),
    "v2, groups, yarn, biases": (
        *V2[:2],
        {"normalize": False, "groups": {"count": 4, "top": 2}},
        {**V2_GROUPS, "attention_bias": True, "rope_parameters": YARN},
    ),
    "v3": (*V3, {"rope_parameters": ROPE}),
    "v3, yarn": (*V3, {"rope_parameters": YARN, "attention_bias": True}),
}


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_logits_and_cached_steps(name, tmp_path):
    model_class, config_class, router, changes = CASES[name]
    config = config_class(**{**SIZES, **changes, "rope_parameters": dict(changes["rope_parameters"])})
    config._experts_implementation = "eager"
    reference = build(model_class, config, seed=11)
    for buffer_name, buffer in reference.named_buffers():
        if buffer_name.endswith("correction_bias"):
            buffer.normal_(0.0, 0.1, generator=torch.Generator().manual_seed(6))
    model = through_checkpoint(reference, spec_of(config, router), tmp_path)
    for side in ("right", "left"):
        ids, mask = ragged(3, 20, config.vocab_size, side, seed=7)
        theirs = reference(ids, attention_mask=mask, position_ids=positions(mask)).logits
        assert_close(model(ids, mask).logits, theirs, mask)
        assert_close(step_through(model, ids, mask, prefill=6), theirs, mask)
