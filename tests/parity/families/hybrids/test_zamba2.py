"""Zamba 2 against transformers, whose single steps do not clamp step sizes to ``time_step_min``, as its full pass does; ours do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st

from specs.forms.canonical import canonical
from specs.language.load import load as load_preset
from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.family import SPECIAL
from tests.parity.families.llamas import LINEAR, YARN, rotation
from tests.parity.families.mixers import MixerTests, check
from zoo.builder import assemble
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError

LINEAR_ATTENTION, HYBRID = "linear_attention", "hybrid"


def layers(pattern: str) -> list[str]:
    """The kinds of layers, ``m`` for Mamba-2 and ``h`` for a layer beside a transformer."""
    return [HYBRID if letter == "h" else LINEAR_ATTENTION for letter in pattern]


class TestZamba2(MixerTests):
    model_class = hf.Zamba2ForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128}
    configs = {
        "two transformers in turn, adapters everywhere": dict(
            vocab_size=61, hidden_size=16, num_hidden_layers=5, layers_block_type=layers("mhhmh"), num_mem_blocks=2,
            num_attention_heads=4, intermediate_size=41, adapter_rank=3, use_shared_attention_adapter=True,
            use_mem_rope=True, rope_parameters=rotation(500.0), n_mamba_heads=4, mamba_d_state=6, mamba_ngroups=2,
            rms_norm_eps=1e-3,
        ),
        "one transformer, grouped queries": dict(
            vocab_size=47, hidden_size=12, num_hidden_layers=3, layers_block_type=layers("hmh"), num_attention_heads=6,
            num_key_value_heads=2, intermediate_size=20, adapter_rank=5, n_mamba_heads=3, mamba_expand=1,
            mamba_d_state=5, mamba_d_conv=3, hidden_act="gelu_new", use_mem_rope=True, rope_parameters=LINEAR,
        ),
        "no rotation, as in 2.7B": dict(
            vocab_size=31, hidden_size=16, num_hidden_layers=4, layers_block_type=layers("mhmh"), num_mem_blocks=2,
            num_attention_heads=4, intermediate_size=33, adapter_rank=2, n_mamba_heads=2, mamba_d_state=4,
        ),
        "all layers hybrid": dict(
            vocab_size=31, hidden_size=12, num_hidden_layers=2, layers_block_type=layers("hh"), num_mem_blocks=1,
            num_attention_heads=2, intermediate_size=33, adapter_rank=2, n_mamba_heads=2, mamba_d_state=4,
            use_mem_rope=True, rope_parameters=YARN, use_shared_attention_adapter=True,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "gelo", "Did you mean 'gelu'?"),
        ("layers_block_type", ["hybrid"], "must have an entry for each of the 5 layers"),
        ("layers_block_type", [*layers("mhhm"), "hybrud"], "Did you mean 'hybrid'?"),
        ("layers_block_type", layers("mmmmm"), "must have a layer of kind hybrid"),
        ("num_mem_blocks", 4, "must be from 1 to 3, the number of hybrid layers"),
        ("num_attention_heads", 5, "must divide 2 * hidden_size, which is 32"),
        ("num_key_value_heads", 2, "must equal num_attention_heads, which is 4: the reference's adapters"),
        ("use_conv_bias", False, "must be true: the reference always adds it"),
        ("tie_word_embeddings", False, "otherwise the reference shares no transformers either"),
        ("use_long_context", True, "set max_position_embeddings to 16384 instead"),
        ("hybrid_layer_ids", [1], "layers_block_type lists these layers"),
    )

    @staticmethod
    def draw(data):
        pattern = data.draw(st.text("mh", min_size=1, max_size=5).filter(lambda text: "h" in text), "layers")
        heads, width = data.draw(st.integers(1, 4), "heads"), 2 * data.draw(st.integers(1, 4), "half a width")
        mamba_heads = data.draw(
            st.sampled_from([each for each in (1, 2, 4) if heads * width % each == 0]), "mixer"
        )
        return dict(
            vocab_size=st.integers(20, 80), hidden_size=heads * width, num_hidden_layers=len(pattern),
            layers_block_type=layers(pattern), num_mem_blocks=st.integers(1, pattern.count("h")),
            num_attention_heads=heads, intermediate_size=st.integers(3, 40), adapter_rank=st.integers(1, 6),
            use_shared_attention_adapter=FLAG, use_mem_rope=FLAG,
            rope_parameters=rotation(data.draw(st.sampled_from([100.0, 10000.0]), "theta")),
            n_mamba_heads=mamba_heads, mamba_d_state=st.integers(1, 12), mamba_d_conv=st.integers(2, 5),
            rms_norm_eps=EPS,
        )  # fmt: skip


@pytest.mark.slow
def test_biases(tmp_path) -> None:
    """The reference adds them to padding on the left, which its convolution sees."""
    values = {**TestZamba2.configs["one transformer, grouped queries"], "add_bias_linear": True}
    check(hf.Zamba2ForCausalLM, TestZamba2.config(**values), tmp_path, sides=("right",))


def test_configs_without_a_list_of_layers() -> None:
    """The usual layers are Zamba2-2.7B's."""
    data = hf.Zamba2Config(num_mem_blocks=2, n_mamba_heads=80).to_dict()
    stated = data.pop("layers_block_type")
    data.pop("hybrid_layer_ids")
    spec = spec_of_config(Config(data, "config.json"), name="usual")
    assert [
        HYBRID if block.attention else LINEAR_ATTENTION for block in spec.decoder.layer_blocks()
    ] == stated
    shorter = Config({**data, "num_hidden_layers": 53}, "config.json")
    with pytest.raises(ConfigError, match="layers_block_type: must be a list: the usual layers are 54"):
        spec_of_config(shorter, name="usual")


def test_layers_of_a_transformer_share_its_weights() -> None:
    """Also after the weights are moved and cast, and each has adapters of its own."""
    config = TestZamba2.configured("two transformers in turn, adapters everywhere")
    spec = spec_of_config(Config(config.to_dict(), "config.json"), name="tiny")
    module: Any = assemble(spec)
    blocks = module.decoder.blocks
    first, second, third = (blocks[i] for i in (1, 2, 4))
    assert first.attention.query.weight is third.attention.query.weight
    assert first.attention_norm.weight is third.attention_norm.weight
    assert first.attention.query.weight is not second.attention.query.weight
    assert first.attention.query.adapter.up.weight is not third.attention.query.adapter.up.weight
    assert first.feed_forward.gate.adapter.down is first.feed_forward.up.adapter.down
    assert first.side.weight is not third.side.weight


_SHAPES: dict[str, dict[str, Any]] = {
    "zamba2-1.2b": dict(
        hidden_size=2048, num_hidden_layers=38, layers_block_type=layers("mmmmmh" * 6 + "mm"), mamba_d_state=128,
        n_mamba_heads=64, use_shared_attention_adapter=True, use_mem_rope=True,
    ),
    "zamba2-2.7b": dict(num_mem_blocks=2, n_mamba_heads=80),
    "zamba2-7b": dict(
        hidden_size=3584, num_hidden_layers=81, layers_block_type=layers("m" * 6 + "hmmmmh" + "mmmmmh" * 11 + "mmm"),
        mamba_ngroups=2, n_mamba_heads=112, num_mem_blocks=2, use_mem_rope=True,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", _SHAPES)
def test_presets_are_the_reference_at_their_sizes(name: str) -> None:
    config = hf.Zamba2Config(**_SHAPES[name])
    spec = spec_of_config(Config(config.to_dict(), "config.json"), name=name)
    assert canonical(spec) == canonical(load_preset(name))
    with torch.device("meta"):
        reference = hf.Zamba2ForCausalLM(config)
    reference.tie_weights()
    assert sum(weight.numel() for weight in reference.parameters()) == load_preset(name).expect.parameters
