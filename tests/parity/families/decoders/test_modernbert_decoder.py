"""The decoder of ModernBERT against transformers."""

from __future__ import annotations

import pytest
import transformers as hf

from tests.parity.families.encoders import test_modernbert
from tests.parity.families.encoders.test_modernbert import FULL, LOCAL, TOKENS
from tests.parity.families.family import SPECIAL, FamilyTests
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError


def test_a_window_follows_from_that_of_the_encoder() -> None:
    data = TestModernBertDecoder.configured("every other").to_dict()
    del data["sliding_window"]
    blocks = spec_of_config(Config(data, "config.json"), name="tiny").decoder.layer_blocks()
    assert [block.attention.window for block in blocks] == [None, 3, None, 3]
    with pytest.raises(ConfigError, match="local_attention: must be 2 or more"):
        spec_of_config(Config({**data, "local_attention": 1}, "config.json"), name="tiny")


class TestModernBertDecoder(FamilyTests):
    model_class = hf.ModernBertDecoderForCausalLM
    defaults = {**SPECIAL, **TOKENS}
    configs = {
        name: {key: value for key, value in config.items() if key != "architectures"}
        for name, config in test_modernbert.TestModernBert.configs.items()
    }
    heads = ("Model", "ForSequenceClassification")
    of_others = ("stated types",)
    refusals = (
        ("hidden_activation", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("layer_types", [FULL, "chunked_attention", LOCAL, FULL], "must have supported kinds only"),
        ("global_attn_every_n_layers", 0, "must be at least 1"),
        ("rope_parameters", {FULL: {"rope_type": "yran"}}, "Did you mean 'yarn'"),
        ("sliding_window", 0, "must be 1 or more"),
        ("architectures", ["ModernBertDecoderForTokenClassification"], "must name a supported class"),
    )

    draw = staticmethod(test_modernbert.TestModernBert.draw)
