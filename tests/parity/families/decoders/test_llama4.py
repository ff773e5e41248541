"""Llama 4's text models against transformers: chunks, layers without rotation, and experts whose input is weighted."""

from __future__ import annotations

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.llamas import LlamaTests, draw_llama, rotation
from tests.parity.reference import assert_close, build, difference, load
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError

LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 700.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 2.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip


class TestLlama4(LlamaTests):
    model_class = hf.Llama4ForCausalLM
    configs = {
        "scout": dict(
            vocab_size=61, hidden_size=60, num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2, head_dim=14,
            intermediate_size=9, intermediate_size_mlp=41, num_local_experts=5, rms_norm_eps=1e-3,
            attention_chunk_size=4, floor_scale=3, attn_scale=0.5,
            rope_parameters={**LLAMA3, "high_freq_factor": 1.0},
        ),
        "maverick": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=4, num_attention_heads=5, num_key_value_heads=5, head_dim=8,
            intermediate_size=12, intermediate_size_mlp=21, num_local_experts=4, num_experts_per_tok=2,
            interleave_moe_layer_step=2, use_qk_norm=False, attention_chunk_size=5, attn_temperature_tuning=False,
            rope_parameters=rotation(500.0),
        ),
        "dense, without chunks": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=3, num_attention_heads=7, num_key_value_heads=1, head_dim=6,
            intermediate_size=5, intermediate_size_mlp=13, moe_layers=[], attention_chunk_size=None,
            no_rope_layers=[0, 1, 1], attention_bias=True, floor_scale=2, tie_word_embeddings=True, hidden_act="gelu",
            rope_parameters=rotation(30.0),
        ),
        "kinds that are stated, all experts": dict(
            vocab_size=31, hidden_size=24, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=6,
            intermediate_size=7, intermediate_size_mlp=5, num_local_experts=3, num_experts_per_tok=3, moe_layers=[0, 1],
            layer_types=["full_attention", "chunked_attention", "chunked_attention"], no_rope_layers=[1, 1, 0],
            attention_chunk_size=3, attn_temperature_tuning=False, rope_parameters=rotation(30.0),
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("layer_types", ["full_attention"] * 3, "must have an entry for each of the 4 layers"),
        ("layer_types", ["sliding_attention"] * 4, "must have supported kinds only"),
        ("no_rope_layers", [1, 0], "must be 0 or 1 for each of the 4 layers"),
        ("no_rope_layers", [1, 0, 2, 1], "must be 0 or 1 for each of the 4 layers"),
        ("moe_layers", ["first"], "must be a list of layers by number, from 0"),
        ("attention_chunk_size", None, "must be a number: there are layers of chunked_attention"),
        ("n_shared_experts", 1, "unsupported fields"),
    )
    drawn = {"length": 17}

    def check(self, model_class, config, directory, **options):
        """Padding on the right alone if queries grow: the reference counts padding before a row among its positions."""
        sides = ("right",) if config.attn_temperature_tuning else ("right", "left")
        return super().check(model_class, config, directory, sides=sides, **options)

    @staticmethod
    def draw(data):
        common = {**draw_llama(data), "head_dim": 2 * data.draw(st.integers(1, 6), "pairs")}
        layers = common["num_hidden_layers"]
        experts = data.draw(st.integers(1, 6), "experts")
        return common | dict(
            intermediate_size_mlp=st.integers(1, 40), num_local_experts=experts,
            num_experts_per_tok=st.integers(1, experts),
            moe_layers=[layer for layer in range(layers) if data.draw(st.booleans(), "mixture")],
            no_rope_layers=[data.draw(st.integers(0, 1), "rotated") for _ in range(layers)],
            attention_chunk_size=st.none() | st.integers(2, 20), use_qk_norm=FLAG, attn_temperature_tuning=FLAG,
            floor_scale=st.integers(1, 20), attn_scale=st.sampled_from([0.1, 2.0]), attention_bias=FLAG,
            rope_parameters=st.sampled_from([rotation(1000.0), LLAMA3]), rms_norm_eps=EPS,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"moe_layers": None, "interleave_moe_layer_step": 0}, "interleave_moe_layer_step: must be at least 1, or moe_layers a list"),
        ({"no_rope_layers": [], "no_rope_layer_interval": 0}, "no_rope_layer_interval: must be at least 1"),
    ],
)  # fmt: skip
def test_steps_between_layers_are_at_least_one(changes, said):
    data = {**TestLlama4.configured("scout").to_dict(), **changes}
    with pytest.raises(ConfigError, match=said):
        spec_of_config(Config(data, "config.json"), name="tiny")


def test_lists_that_are_not_stated_follow_from_steps():
    data = TestLlama4.configured("maverick").to_dict()
    stated = spec_of_config(Config(data, "config.json"), name="tiny")
    assert (data["moe_layers"], data["no_rope_layers"]) == ([1, 3], [1, 1, 1, 0])
    usual = {
        name: value
        for name, value in data.items()
        if name not in ("moe_layers", "no_rope_layers", "layer_types")
    }
    assert spec_of_config(Config(usual, "config.json"), name="tiny") == stated


@pytest.fixture
def both(tmp_path):
    """A reference, and ours with its weights, for prompts of several chunks."""
    config = TestLlama4.configured("scout")
    config._experts_implementation = "eager"
    reference = build(hf.Llama4ForCausalLM, config, 3)
    reference.save_pretrained(tmp_path)
    return reference, load(import_spec(tmp_path), tmp_path)


def test_greedy_tokens_of_a_prompt_and_of_its_pieces(both):
    """The reference's cache of a layer with chunks holds no more tokens than a chunk has."""
    reference, ours = both
    ids = torch.randint(1, 61, (2, 10), generator=torch.Generator().manual_seed(0))
    options = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    told = reference.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=11, **options)
    assert ours.generate(ids.tolist(), 11) == told[:, 10:].tolist()
    with torch.no_grad():
        expected, past = reference(told).logits, None
        parts: list[torch.Tensor] = []
        for start, end in ((0, 3), (3, 9), (9, 10), (10, 21)):
            outputs = ours(told[:, start:end], torch.ones_like(told[:, :end]), past)
            past, parts = outputs.present_key_values, [*parts, outputs["logits"]]
    assert_close(torch.cat(parts, 1), expected)


def test_gradients_reach_the_embedding_alike(both):
    ids = torch.randint(1, 61, (2, 13), generator=torch.Generator().manual_seed(1))
    weights = torch.randn(2, 13, 61, generator=torch.Generator().manual_seed(2))
    found: list[torch.Tensor] = []
    for model, table in zip(both, ("model.embed_tokens.weight", "embedding.token.weight"), strict=True):
        scores = model(ids).logits if table.startswith("model") else model(ids)["logits"]
        found += torch.autograd.grad((scores * weights).sum(), [dict(model.named_parameters())[table]])
    scale = found[0].abs().max()
    assert difference(found[1] / scale, found[0] / scale) <= 1e-5
