"""OLMo Hybrid against transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from tests.parity.families.draws import EPS, FLAG, lists
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import YARN, draw_llama, rotation
from tests.parity.families.sizes import MULTI_QUERY
from tests.parity.reference import build, load
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec
from zoo.weights.source import WeightError

FULL, LINEAR = "full_attention", "linear_attention"
UNROTATED = {"rope_type": "default", "rope_theta": None}


class TestOlmoHybrid(FamilyTests):
    model_class = hf.OlmoHybridForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128}
    configs = {
        "every fourth": dict(
            vocab_size=61, hidden_size=36, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2,
            intermediate_size=41, rms_norm_eps=1e-3, rope_parameters=UNROTATED, linear_num_key_heads=2,
            linear_num_value_heads=6, linear_key_head_dim=5, linear_value_head_dim=7,
        ),
        "listed, defaults": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=3, num_attention_heads=5, intermediate_size=50,
            attention_bias=True, layer_types=[FULL, LINEAR, LINEAR], linear_conv_kernel_dim=3,
            linear_allow_neg_eigval=False, hidden_act="gelu_new", rope_parameters=YARN, tie_word_embeddings=True,
        ),
        "rotated": dict(
            MULTI_QUERY, num_hidden_layers=2, rope_parameters=rotation(90.0), linear_num_key_heads=1,
            linear_num_value_heads=2,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("layer_types", [LINEAR], "an entry for each of the 5 layers"),
        ("layer_types", ["linear_attend"] * 5, "Did you mean 'linear_attention'?"),
        ("rope_parameters", {"rope_type": "yarnn", "rope_theta": 9.0, "factor": 2.0}, "Did you mean 'yarn'?"),
    )

    @staticmethod
    def draw(data):
        common = draw_llama(data)
        layers, key_heads = common["num_hidden_layers"] + 1, data.draw(st.integers(1, 3), "key heads")
        kinds = lists([FULL, LINEAR], layers).filter(lambda kinds: len(set(kinds)) == 2)
        if data.draw(FLAG, "unrotated"):
            common["rope_parameters"] = UNROTATED
        return common | dict(
            num_hidden_layers=layers, layer_types=kinds, rms_norm_eps=EPS, attention_bias=FLAG,
            linear_num_key_heads=key_heads, linear_allow_neg_eigval=FLAG,
            linear_num_value_heads=key_heads * data.draw(st.integers(1, 3), "value heads of a key head"),
            linear_key_head_dim=st.integers(2, 9), linear_value_head_dim=st.integers(2, 9),
            linear_conv_kernel_dim=st.integers(2, 5),
        )  # fmt: skip


def test_kernels_of_values_are_as_wide_as_published_or_as_transformers_saves_them(tmp_path: Path) -> None:
    """It saves three equal parts of the kernels of queries, keys and values, whatever their widths."""
    reference = build(hf.OlmoHybridForCausalLM, TestOlmoHybrid.configured(), 1)
    reference.save_pretrained(tmp_path / "equal")
    spec, written = import_spec(tmp_path / "equal"), tmp_path / "published"
    written.mkdir()
    convert(spec, str(tmp_path / "equal"), written, model_type="olmo_hybrid")
    rows = [[len(load_file(path / "model.safetensors")[f"{_MIXER}.{part}_conv1d.weight"]) for part in "qkv"]
            for path in (tmp_path / "equal", written)]  # fmt: skip
    assert rows == [[21, 21, 20], [10, 10, 42]]
    ours, again = (dict(load(spec, path).named_parameters()) for path in (tmp_path / "equal", written))
    assert all(torch.equal(ours[name], again[name]) for name in ours)
    tensors = load_file(written / "model.safetensors")
    tensors[f"{_MIXER}.v_conv1d.weight"] = tensors[f"{_MIXER}.v_conv1d.weight"][1:].clone()
    save_file(tensors, written / "model.safetensors", {"format": "pt"})
    with pytest.raises(WeightError, match=r"v_conv1d.weight is 41 x 1 x 4, and .* needs 42 x 1 x 4"):
        load(spec, written)


_MIXER = "model.layers.0.linear_attn"
