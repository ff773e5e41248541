"""Zamba against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st

from specs.forms.canonical import canonical
from specs.language.load import load as load_preset
from tests.parity.families.draws import EPS
from tests.parity.families.family import SPECIAL
from tests.parity.families.hybrids.test_zamba2 import HYBRID, LINEAR_ATTENTION, layers
from tests.parity.families.mixers import MixerTests
from zoo.builder import assemble
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError


class TestZamba(MixerTests):
    model_class = hf.ZambaForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128}
    configs = {
        "two heads, as published": dict(
            vocab_size=61, hidden_size=16, num_hidden_layers=5, layers_block_type=layers("mmhmh"), num_attention_heads=4,
            num_key_value_heads=4, intermediate_size=41, n_mamba_heads=2, mamba_d_state=6, rms_norm_eps=1e-3,
        ),
        "four heads, grouped queries": dict(
            vocab_size=47, hidden_size=12, num_hidden_layers=3, layers_block_type=layers("hmh"), num_attention_heads=6,
            num_key_value_heads=2, intermediate_size=20, n_mamba_heads=4, mamba_expand=1, mamba_d_state=5, mamba_d_conv=3,
            mamba_dt_rank=7, hidden_act="gelu_new", mamba_conv_bias=False,
        ),
        "one head, the usual layers": dict(
            vocab_size=31, hidden_size=10, num_hidden_layers=8, attn_layer_period=3, attn_layer_offset=1,
            num_attention_heads=2, num_key_value_heads=2, intermediate_size=33, n_mamba_heads=1, mamba_d_state=4,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "gelo", "Did you mean 'gelu'?"),
        ("layers_block_type", ["hybrid"], "must have an entry for each of the 5 layers"),
        ("layers_block_type", layers("mmmhm"), "must have at least 2 layers of kind hybrid"),
        ("num_attention_heads", 5, "must divide 2 * hidden_size, which is 32"),
        ("n_mamba_heads", 3, "must divide the width of the mixer, which is 32"),
        ("tie_word_embeddings", False, "otherwise the reference shares no transformer either"),
        ("attention_head_dim", 3, "the heads share the width of stream and embedding"),
    )

    @staticmethod
    def draw(data):
        """The reference cannot tie a transformer that a single layer uses."""
        pattern = data.draw(st.text("mh", max_size=5).filter(lambda text: text.count("h") > 1), "layers")
        heads, width = data.draw(st.integers(1, 4), "heads"), 2 * data.draw(st.integers(1, 4), "half a width")
        mamba_heads = data.draw(
            st.sampled_from([each for each in (1, 2, 4) if 2 * heads * width % each == 0]), "mixer"
        )
        return dict(
            vocab_size=st.integers(20, 80), hidden_size=heads * width, num_hidden_layers=len(pattern),
            layers_block_type=layers(pattern), num_attention_heads=heads, num_key_value_heads=heads,
            intermediate_size=st.integers(3, 40), n_mamba_heads=mamba_heads, mamba_d_state=st.integers(1, 12),
            mamba_d_conv=st.integers(2, 5), mamba_dt_rank=st.integers(1, 6), rms_norm_eps=EPS,
        )  # fmt: skip


def test_configs_without_a_list_of_layers() -> None:
    """The usual layers are Zamba-7B's."""
    data = hf.ZambaConfig().to_dict()
    stated = data.pop("layers_block_type")
    spec = spec_of_config(Config(data, "config.json"), name="usual")
    kinds = [HYBRID if block.attention else LINEAR_ATTENTION for block in spec.decoder.layer_blocks()]
    assert kinds == stated
    for field, value, rule in (
        (
            "num_hidden_layers",
            2,
            "layers_block_type: must be a list: without one there are at least 3 layers",
        ),
        ("attn_layer_period", 0, "attn_layer_period: must be at least 1"),
    ):
        with pytest.raises(ConfigError, match=rule):
            spec_of_config(Config({**data, field: value}, "config.json"), name="usual")


def test_all_hybrid_layers_share_one_transformer() -> None:
    config = TestZamba.configured("two heads, as published")
    spec = spec_of_config(Config(config.to_dict(), "config.json"), name="tiny")
    module: Any = assemble(spec)
    first, second = (module.decoder.blocks[i] for i in (2, 4))
    assert first.attention.query.weight is second.attention.query.weight
    assert first.mixer.selection.weight is not second.mixer.selection.weight
    assert first.side.weight is not second.side.weight


@pytest.mark.slow
def test_the_preset_is_the_reference_at_its_size() -> None:
    config = hf.ZambaConfig()
    spec = spec_of_config(Config(config.to_dict(), "config.json"), name="zamba-7b")
    assert canonical(spec) == canonical(load_preset("zamba-7b"))
    with torch.device("meta"):
        reference = hf.ZambaForCausalLM(config)
    reference.tie_weights()
    assert (
        sum(weight.numel() for weight in reference.parameters()) == load_preset("zamba-7b").expect.parameters
    )
