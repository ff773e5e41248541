"""EoMT against transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from specs.base.errors import UserError
from tests.parity.families.draws import FLAG
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.harness import load as load_model
from tests.parity.families.vision_tests import draw_patches
from tests.parity.reference import build
from zoo.configs.importing import import_spec

CONFIGS: dict[str, Any] = {
    "remainder": dict(
        hidden_size=21, num_hidden_layers=3, num_attention_heads=3, mlp_ratio=2, hidden_act="gelu_new",
        layer_norm_eps=1e-3, image_size=14, patch_size=4, num_channels=3, layerscale_value=1e-5, num_blocks=1, num_queries=5,
        num_register_tokens=1, num_upscale_blocks=1, num_labels=3,
    ),
    "gated": dict(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=4, use_swiglu_ffn=True, hidden_dropout_prob=0.2,
        image_size=8, patch_size=4, num_channels=1, num_blocks=2, num_queries=1, num_register_tokens=0, num_labels=7,
    ),
}  # fmt: skip


class TestEomt(RightPaddedTests):
    model_class = hf.EomtForUniversalSegmentation
    configs: ClassVar[Any] = CONFIGS
    refusals: ClassVar[Any] = (
        ("image_size", [32, 24], "must be a whole number", "square"),
        ({"num_blocks": 4}, "num_blocks: must be at most 3, the number of layers"),
        ("drop_path_rate", 0.1, "must be 0.0", "without some of the layers"),
    )

    @staticmethod
    def prepare(reference, seed):
        """As training ends."""
        reference.attn_mask_probs.zero_()

    @staticmethod
    def draw(data):
        layers = data.draw(st.integers(1, 3), "layers")
        fields = draw_patches(
            data, mlp_ratio=st.integers(1, 5), use_swiglu_ffn=FLAG, layerscale_value=st.sampled_from([1e-5, 0.1, 1.0]),
            num_hidden_layers=layers, num_blocks=st.integers(1, layers), num_queries=st.integers(1, 9), num_register_tokens=st.integers(0, 4),
            num_upscale_blocks=st.integers(0, 3), num_labels=st.integers(1, 9),
        )  # fmt: skip
        return {name: value for name, value in fields.items() if name != "intermediate_size"}


class TestEomtDinov3(TestEomt):
    model_class = hf.EomtDinov3ForUniversalSegmentation
    configs: ClassVar[Any] = {
        "rotated": dict(
            hidden_size=24, num_hidden_layers=3, num_attention_heads=2, intermediate_size=17, hidden_act="relu", num_labels=3,
            image_size=14, patch_size=4, num_blocks=2, num_queries=5, num_register_tokens=1, num_upscale_blocks=1,
            rope_parameters={"rope_type": "default", "rope_theta": 50.0}, key_bias=True,
        ),
        "gated": dict(
            hidden_size=16, num_hidden_layers=2, num_attention_heads=1, intermediate_size=20, use_gated_mlp=True, mlp_bias=False,
            image_size=8, patch_size=4, num_channels=1, num_blocks=2, num_queries=1, num_register_tokens=0, num_labels=7,
        ),
    }  # fmt: skip
    refusals: ClassVar[Any] = (({"num_blocks": 9}, "num_blocks: must be at most 3"),)

    @staticmethod
    def draw(data):
        fields = TestEomt.draw(data)
        heads = fields["num_attention_heads"]
        theta = data.draw(st.sampled_from([10.0, 100.0]), "theta")
        kept = {name: value for name, value in fields.items() if name not in ("mlp_ratio", "use_swiglu_ffn")}
        return kept | dict(
            hidden_size=heads * 4 * data.draw(st.integers(1, 3), "quarters"), intermediate_size=st.integers(1, 40),
            rope_parameters={"rope_type": "default", "rope_theta": theta}, use_gated_mlp=FLAG, key_bias=FLAG, mlp_bias=FLAG,
        )  # fmt: skip


def saved(directory: Path, name: str = "gated") -> Any:
    """A checkpoint, as training ends."""
    reference = build(hf.EomtForUniversalSegmentation, hf.EomtConfig(**CONFIGS[name]), 1)
    TestEomt.prepare(reference, 1)
    reference.save_pretrained(directory)
    return reference


def test_fused_gates_of_earlier_releases(tmp_path):
    saved(tmp_path)
    spec, path = import_spec(tmp_path), tmp_path / "model.safetensors"
    ours, tensors = load_model(spec, tmp_path), load_file(path)
    for layer in range(2):
        mlp = f"layers.{layer}.mlp"
        for leaf in ("weight", "bias"):
            parts = [tensors.pop(f"{mlp}.{name}_proj.{leaf}") for name in ("gate", "up", "down")]
            tensors[f"{mlp}.weights_in.{leaf}"], tensors[f"{mlp}.weights_out.{leaf}"] = (
                torch.cat(parts[:2]),
                parts[2],
            )
    save_file(tensors, path, {"format": "pt"})
    again = load_model(spec, tmp_path).state_dict()
    assert all(torch.equal(again[name], values) for name, values in ours.state_dict().items())


def test_masks_of_attention_are_refused(tmp_path):
    reference = saved(tmp_path)
    reference.attn_mask_probs[1] = 0.5
    reference.save_pretrained(tmp_path)
    with pytest.raises(
        UserError, match=r"attn_mask_probs must be zeros: .*\n  value: \[0.0, 0.5\]\n  Use the checkpoint"
    ):
        load_model(import_spec(tmp_path), tmp_path)
