"""DeepSeek-V2 and V3 against transformers."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from specs.forms.canonical import canonical, differences
from tests.parity.families.draws import EPS, FLAG, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.harness import check
from tests.parity.families.llamas import LINEAR, rotation
from tests.parity.families.mixtures import breaks_a_rule
from tests.parity.reference import build
from tests.thinned import one_in
from zoo.builder import assemble
from zoo.checkpoints.open_weights import open_weights
from zoo.configs.exporting import write_config
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config
from zoo.weights.source import WeightError

YARN = {
    "rope_type": "yarn", "rope_theta": 300.0, "factor": 4.0, "original_max_position_embeddings": 16,
    "mscale": 0.8, "mscale_all_dim": 1.2, "beta_fast": 32.0, "beta_slow": 1.0,
}  # fmt: skip
YARN_ALL = {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707}
YARN_PLAIN = {key: value for key, value in YARN.items() if not key.startswith("mscale")}

CONFIGS: dict[str, dict[str, Any]] = {
    "groups": dict(
        vocab_size=61, hidden_size=24, intermediate_size=20, moe_intermediate_size=9, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=4, n_shared_experts=2, n_routed_experts=8, num_experts_per_tok=3,
        routed_scaling_factor=1.5, kv_lora_rank=10, q_lora_rank=14, qk_rope_head_dim=6, qk_nope_head_dim=8,
        v_head_dim=7, n_group=4, topk_group=2, first_k_dense_replace=1, max_position_embeddings=64,
        rms_norm_eps=1e-3, attention_bias=True, rope_parameters=YARN,
    ),
    "no query rank": dict(
        vocab_size=50, hidden_size=33, intermediate_size=31, moe_intermediate_size=5, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, n_shared_experts=1, n_routed_experts=5, num_experts_per_tok=2,
        routed_scaling_factor=0.7, kv_lora_rank=8, q_lora_rank=None, qk_rope_head_dim=8, qk_nope_head_dim=4,
        v_head_dim=11, n_group=1, topk_group=1, first_k_dense_replace=0, max_position_embeddings=64,
        tie_word_embeddings=True, hidden_act="gelu", rope_parameters=YARN_ALL,
    ),
    "dense mostly": dict(
        vocab_size=50, hidden_size=20, intermediate_size=17, moe_intermediate_size=6, num_hidden_layers=4,
        num_attention_heads=5, num_key_value_heads=5, n_shared_experts=0, n_routed_experts=6, num_experts_per_tok=4,
        kv_lora_rank=12, q_lora_rank=9, qk_rope_head_dim=4, qk_nope_head_dim=6, v_head_dim=6, n_group=2,
        topk_group=2, first_k_dense_replace=3, max_position_embeddings=64, rope_parameters=rotation(500.0),
    ),
}  # fmt: skip
V2: dict[str, dict[str, Any]] = {
    "groups": dict(topk_method="group_limited_greedy", mlp_bias=True),
    "no query rank": dict(topk_method="greedy"),
    "dense mostly": dict(topk_method="group_limited_greedy"),
}
"""Further fields of V2."""
V3: dict[str, dict[str, Any]] = {
    "groups": dict(norm_topk_prob=False),
    "no query rank": dict(rope_interleave=False),
    "dense mostly": dict(norm_topk_prob=True),
}
"""Further fields of V3."""


@pytest.mark.slow
def test_groups_of_v2_that_leave_fewer_experts_than_are_chosen(tmp_path):
    """The others that are chosen have the weight 0."""
    config = TestDeepseekV2.configured("groups")
    config.topk_group = 1
    spec = check(hf.DeepseekV2ForCausalLM, config, tmp_path)
    assert [block.feed_forward.top_k for block in spec.decoder.layer_blocks()[1:]] == [2, 2]


@one_in(2)
@pytest.mark.parametrize("version", [2, 3])
def test_layers_may_all_be_dense(version, tmp_path):
    family = (TestDeepseekV2, TestDeepseekV3)[version - 2]
    check(family.model_class, family.configured("groups", first_k_dense_replace=5), tmp_path)


@pytest.mark.parametrize("prefix", ["model.", ""])
def test_layers_that_guess_further_tokens_are_passed_over(prefix, tmp_path):
    """Multi-token prediction of V3: the reference's model has no such layers either."""
    model_class = hf.DeepseekV3ForCausalLM if prefix else hf.DeepseekV3Model
    reference = build(model_class, TestDeepseekV3.configured("groups"), 3)
    reference.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    names = ("eh_proj.weight", "enorm.weight", "mlp.experts.0.up_proj.weight", "shared_head.norm.weight")
    further = {f"{prefix}layers.3.{name}": torch.zeros(2) for name in names}
    save_file(tensors | further, tmp_path / "model.safetensors")
    spec = import_spec(tmp_path)
    source: Any = open_weights(str(tmp_path), assemble(spec), spec)
    assert source.ignored == ()
    del further[f"{prefix}layers.3.eh_proj.weight"]
    save_file(tensors | further, tmp_path / "model.safetensors")
    with pytest.raises(WeightError, match="3 unused"):
        open_weights(str(tmp_path), assemble(spec), spec)


def draw_common(data, *, least: int) -> dict:
    """Any values of what both have; ``least`` is how many experts a group has at least."""
    heads, layers = data.draw(st.integers(1, 5), "heads"), data.draw(st.integers(1, 4), "layers")
    groups = data.draw(st.integers(1, 3), "groups")
    size = data.draw(st.integers(max(least, 3 - groups), 4), "experts in a group")  # a router has a choice
    top = data.draw(st.integers(1, groups), "groups open")
    ropes = [rotation(100.0), rotation(1e4), LINEAR, YARN, YARN_ALL, YARN_PLAIN]
    return dict(
        vocab_size=VOCAB, hidden_size=heads * data.draw(st.integers(2, 9), "hidden_size / heads"),
        intermediate_size=st.integers(1, 50), moe_intermediate_size=st.integers(1, 20), num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=heads, n_shared_experts=st.integers(0, 3),
        n_routed_experts=groups * size, num_experts_per_tok=st.integers(min(2, top * size), top * size),
        routed_scaling_factor=st.sampled_from([0.5, 1.0, 2.5]),
        kv_lora_rank=2 * data.draw(st.integers(1, 10), "kv_rank / 2"), q_lora_rank=st.none() | st.integers(1, 20),
        qk_rope_head_dim=2 * data.draw(st.integers(1, 6), "pairs"),
        qk_nope_head_dim=2 * data.draw(st.integers(1, 6), "unrotated / 2"), v_head_dim=st.integers(1, 12),
        n_group=groups, topk_group=top, first_k_dense_replace=st.integers(0, layers - 1),
        hidden_act=st.sampled_from(["gelu", "relu", "silu"]), max_position_embeddings=256, rms_norm_eps=EPS,
        attention_bias=FLAG, tie_word_embeddings=FLAG, rope_parameters=st.sampled_from(ropes), **SPECIAL,
    )  # fmt: skip


class TestDeepseekV2(FamilyTests):
    model_class = hf.DeepseekV2ForCausalLM
    configs = {name: {**values, **V2[name]} for name, values in CONFIGS.items()}
    heads = ("Model", "ForSequenceClassification")
    refusals = (
        ("scoring_func", "sigmoid", 'must be "softmax"'),
        ("norm_topk_prob", True, "must be false"),
        ("topk_method", "group_limited", "Did you mean 'group_limited_greedy'?"),
        ("n_group", None, "must be a number"),
        ("moe_layer_freq", 2, "must be 1"),
        ("num_key_value_heads", 2, "must be 4"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        method = data.draw(st.sampled_from(["greedy", "group_limited_greedy"]), "method")
        fields = draw_common(data, least=1)
        # shared experts of width 0 still add their bias, which is refused
        fields["n_shared_experts"] = shared = data.draw(fields["n_shared_experts"], "n_shared_experts")
        return fields | dict(topk_method=method, mlp_bias=data.draw(st.booleans(), "mlp_bias") and shared > 0)


class TestDeepseekV3(FamilyTests):
    model_class = hf.DeepseekV3ForCausalLM
    configs = {name: {**values, **V3[name]} for name, values in CONFIGS.items()}
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    refusals = (
        ("topk_method", "greedy", 'must be "noaux_tc"'),
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("quantization_config", {"quant_method": "fp6"}, "Did you mean 'fp8'?"),
        ("index_topk", 2048, "unsupported fields"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        return draw_common(data, least=2) | dict(norm_topk_prob=FLAG, rope_interleave=FLAG)


LITE = {
    "architectures": ["DeepseekV2ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
    "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV2Config"}, "aux_loss_alpha": 0.001,
    "bos_token_id": 100000, "eos_token_id": 100001, "first_k_dense_replace": 1, "hidden_act": "silu",
    "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 10944, "kv_lora_rank": 512,
    "max_position_embeddings": 163840, "model_type": "deepseek_v2", "moe_intermediate_size": 1408,
    "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": False,
    "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_key_value_heads": 16,
    "pretraining_tp": 1, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "rms_norm_eps": 1e-06, "rope_scaling": {
        "beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707,
        "original_max_position_embeddings": 4096, "type": "yarn",
    }, "rope_theta": 10000, "routed_scaling_factor": 1.0, "scoring_func": "softmax", "seq_aux": True,
    "tie_word_embeddings": False, "topk_group": 1, "topk_method": "greedy", "torch_dtype": "bfloat16",
    "transformers_version": "4.33.1", "use_cache": True, "v_head_dim": 128, "vocab_size": 102400,
}  # fmt: skip
"""The config of DeepSeek-V2-Lite."""


def test_a_published_config_and_its_new_spelling_are_one_architecture(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LITE))
    new = hf.DeepseekV2Config.from_pretrained(tmp_path).to_dict()
    old = spec_of_config(Config(LITE, "config.json"), name="lite")
    again = spec_of_config(Config({**new, "architectures": LITE["architectures"]}, "new"), name="lite")
    assert not list(differences(canonical(old), canonical(again)))
    written = write_config(old)
    stated = written["rope_scaling"]
    assert (stated["mscale"], stated["mscale_all_dim"]) == pytest.approx((0.707, 0.707), rel=1e-12)


def test_configs_that_break_a_rule_are_refused():
    breaks_a_rule(
        TestDeepseekV3.configured("groups"),
        {"topk_group": 5},
        "topk_group: must not exceed n_group, which is 4",
    )
    # The reference takes the missing ones from closed groups, and which of those is left to how equals are sorted.
    breaks_a_rule(
        TestDeepseekV3.configured("groups"),
        {"topk_group": 1},
        "must leave at least top_k experts, which is 3",
    )
