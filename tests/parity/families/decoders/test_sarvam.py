"""Sarvam 30B and 105B against transformers, which has configs of theirs and the code of GLM-4.5 and DeepSeek-V3."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.decoders.test_deepseek import CONFIGS
from tests.parity.families.draws import EPS, FLAG, HEAD_DIM, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import YARN, YARN_MSCALE, LlamaTests, draw_llama, rotation
from tests.parity.families.mixtures import draw_routed
from tests.parity.families.sizes import GROUPED, MULTI_HEAD
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config


class SarvamMoEForCausalLM(hf.Glm4MoeForCausalLM):
    """The class that published configs name; transformers renames the tensors of classes of its own alone."""

    __module__ = hf.Glm4MoeForCausalLM.__module__
    config_class = hf.SarvamMoEConfig


class SarvamMLAForCausalLM(hf.DeepseekV3ForCausalLM):
    """The class that published configs name; transformers renames the tensors of classes of its own alone."""

    __module__ = hf.DeepseekV3ForCausalLM.__module__
    config_class = hf.SarvamMLAConfig


class TestSarvamMoe(LlamaTests):
    model_class = SarvamMoEForCausalLM
    configs = {
        "dense first": dict(
            GROUPED, head_dim=12, moe_intermediate_size=9, n_routed_experts=8, num_experts_per_tok=3,
            n_shared_experts=2, n_group=4, topk_group=2, attention_bias=True,
        ),
        "plain heads": dict(
            MULTI_HEAD, head_dim=8, moe_intermediate_size=7, n_routed_experts=5, num_experts_per_tok=1,
            use_qk_norm=False, norm_topk_prob=False, first_k_dense_replace=0, rope_parameters=YARN,
        ),
    }  # fmt: skip
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("mlp_bias", True, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        common = draw_llama(data) | {"tie_word_embeddings": False}
        return common | draw_routed(data, common["num_hidden_layers"]) | dict(
            head_dim=HEAD_DIM, use_qk_norm=FLAG, attention_bias=FLAG, rms_norm_eps=EPS
        )  # fmt: skip


class TestSarvamMla(FamilyTests):
    model_class = SarvamMLAForCausalLM
    configs = CONFIGS
    refusals = (("q_head_dim", 3, "it is qk_nope_head_dim"),)

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 4), "heads")
        layers = data.draw(st.integers(1, 3), "layers")
        return draw_routed(data, layers) | dict(
            vocab_size=VOCAB, hidden_size=heads * data.draw(st.integers(2, 9), "hidden_size / heads"),
            num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=heads, rms_norm_eps=EPS,
            intermediate_size=st.integers(1, 50), kv_lora_rank=st.integers(1, 20), q_lora_rank=st.none() | st.integers(1, 20),
            qk_nope_head_dim=st.integers(1, 8), qk_rope_head_dim=2 * data.draw(st.integers(1, 4), "rotated pairs"),
            v_head_dim=st.integers(1, 8), rope_interleave=FLAG, rope_parameters=st.sampled_from([rotation(90.0), YARN_MSCALE]),
            **SPECIAL,
        )  # fmt: skip


def test_published_configs_have_names_of_their_own():
    data = TestSarvamMla.configured("no query rank").to_dict() | {
        "rope_scaling": {"type": "deepseek_yarn", "factor": 4.0, "original_max_position_embeddings": 16},
        "head_dim": 16, "q_head_dim": 12, "num_experts": 5, "num_shared_experts": 3,
    }  # fmt: skip
    for name in ("rope_parameters", "n_routed_experts", "n_shared_experts", "qk_head_dim"):
        del data[name]
    spec = spec_of_config(Config(data, "config.json"), name="tiny")
    assert spec.decoder is not None
    mixture = spec.decoder.layer_blocks()[-1].feed_forward
    scaling = spec.model_dump()["position"]["scaling"]["kind"]
    assert (mixture.experts, mixture.shared.hidden, scaling) == (5, 15, "yarn")
