"""RWKV-7 against its paper, with the names of flash-linear-attention."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from specs.forms.canonical import canonical
from specs.language.load import load as load_preset
from specs.model.model import Model
from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.mixers import MixerTests
from tests.parity.families.rwkv7 import RWKV7Config, RWKV7ForCausalLM, RWKV7Model
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError

RANKS = ("decay_low_rank_dim", "gate_low_rank_dim", "a_low_rank_dim", "v_low_rank_dim")


class TestRWKV7(MixerTests):
    model_class = RWKV7ForCausalLM
    configs = {
        "three layers": dict(
            vocab_size=61, hidden_size=12, num_hidden_layers=3, head_dim=4, decay_low_rank_dim=3, gate_low_rank_dim=5,
            a_low_rank_dim=2, v_low_rank_dim=4, max_position_embeddings=128, norm_eps=1e-3,
        ),
        "heads by their number, a width of its own": dict(
            vocab_size=47, hidden_size=10, num_hidden_layers=2, head_dim=None, num_heads=2, intermediate_size=23,
            decay_low_rank_dim=2, gate_low_rank_dim=2, a_low_rank_dim=3, v_low_rank_dim=1, max_position_embeddings=128,
            norm_first=False, norm_bias=False,
        ),
        "one layer": dict(
            vocab_size=31, hidden_size=8, num_hidden_layers=1, head_dim=8, hidden_ratio=3.5, decay_low_rank_dim=2,
            gate_low_rank_dim=4, a_low_rank_dim=2, max_position_embeddings=128, value_dim=[8],
        ),
    }  # fmt: skip
    others = [(RWKV7Model, {})]
    refusals = (
        ("head_dim", 5, "must divide hidden_size, which is 12"),
        ("hidden_act", "silu", "other activations of channel mixing are not supported"),
        ("attn", {"layers": [1]}, "layers with attention are not supported"),
        ("value_dim", [12, 24, 12], "values wider than keys are not supported"),
        ("tie_word_embeddings", True, "the published models are not tied"),
    )

    @staticmethod
    def draw(data: st.DataObject) -> dict[str, Any]:
        width, heads = data.draw(st.integers(1, 6), "width"), data.draw(st.integers(1, 4), "heads")
        return dict(
            vocab_size=st.integers(20, 80), hidden_size=2 * width * heads, head_dim=2 * width,
            num_hidden_layers=st.integers(1, 3), intermediate_size=st.sampled_from([None, 5, 24]),
            hidden_ratio=st.sampled_from([None, 2.0, 4.0]), norm_first=FLAG, norm_bias=FLAG, norm_eps=EPS,
            max_position_embeddings=128, **dict.fromkeys(RANKS, st.integers(1, 6)),
        )  # fmt: skip


def imported(**fields: Any) -> Model:
    return spec_of_config(Config(RWKV7Config(**fields).to_dict(), "config.json"), name="rwkv7")


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("rwkv7-0.1b", (768, 12, 64, 128, 64, 32)),
        ("rwkv7-0.4b", (1024, 24, 64, 128, 64, 32)),
        ("rwkv7-1.5b", (2048, 24, 96, 256, 96, 64)),
        ("rwkv7-2.9b", (2560, 32, 96, 320, 96, 64)),
    ],
)
def test_presets_are_the_published_sizes(name: str, sizes: tuple[int, ...]) -> None:
    width, depth, *ranks = sizes
    shape = {"vocab_size": 65536, "max_position_embeddings": 4096, **dict(zip(RANKS, ranks, strict=True))}
    spec = imported(hidden_size=width, num_hidden_layers=depth, **shape)
    assert canonical(spec) == canonical(load_preset(name))


def test_heads_must_be_stated_one_way_or_the_other() -> None:
    with pytest.raises(ConfigError, match="num_heads: must divide hidden_size, which is 2048"):
        imported(head_dim=None)


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        (["decoder.layers=[{use: first}, {use: channels}, {use: first}]"], "3 layers: it has pairs of them"),
        (
            ["decoder.layers=[{use: first}, {use: channels}, {use: first}, {use: channels}]"],
            "values of their own in layers after the first",
        ),
        (
            ["decoder.layers=[{use: first}, {}, {use: channels}, {use: channels}]"],
            "time and channel mixing that do not take turns",
        ),
        (
            ["decoder.block.mixer.heads=6", "decoder.blocks.first.mixer.heads=6"],
            "heads of width 384 together",
        ),
    ],
)
def test_what_the_published_class_is_not(changes: list[str], because: str) -> None:
    with pytest.raises(NoFamilyError, match=because):
        write_config(load_preset("rwkv7-0.1b", [*changes, "expect={}"]), "rwkv7")
