"""Decoders with states of constant size, exported: every kind of mixer, for every target and in every float precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.model.model import Model
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, gpt2, t5

MIXERS: dict[str, dict[str, Any]] = {
    "short_convolution": {},
    "gated_delta_net": {"heads": 4, "key_heads": 2, "key_width": 4, "value_width": 6},
    "kimi_delta_attention": {"heads": 2, "head_dim": 4},
    "linear_attention": {"heads": 2, "key_width": 4, "value_width": 6},
    "mamba": {"width": 16, "state_size": 4, "step_rank": 2},
    "mamba2": {
        "heads": 4,
        "head_dim": 4,
        "state_size": 8,
        "groups": 2,
        "multipliers": {"input": 1.2, "gate": 0.5, "key": 0.7, "step": 1.5, "output": 0.9},
    },
    "rg_lru": {"width": 8, "heads": 2},
    "rwkv7": {"heads": 2, "head_dim": 4, "decay_rank": 2, "update_rank": 3, "gate_rank": 4},
    "rwkv_channel_mix": {"hidden": 16},
}


def hybrid(kind: str) -> Model:
    """A layer with a mixer, and one with attention."""
    mixing = {**BLOCK, "attention": None, "mixer": {"kind": kind, **MIXERS[kind]}}
    stack = {"layers": [{"use": "mixing"}, {}], "block": BLOCK, "blocks": {"mixing": mixing}}
    return gpt2(decoder=stack, position={"kind": "rope"})


@pytest.mark.slow
@pytest.mark.parametrize("kind", MIXERS)
@pytest.mark.parametrize(
    ("target", "precision"),
    [
        ("portable", "fp32"),
        ("portable", "bf16"),
        ("cpu", "fp32"),
        ("cpu", "fp16"),
        ("cuda", "fp16"),
        ("cuda", "int4"),
        ("portable-27", "fp32"),
        ("portable-27", "bf16"),
        ("tensorrt", "fp32"),
        ("tensorrt", "fp16"),
    ],
)
def test_every_kind_of_mixer_is_exported_for_every_target(
    kind: str, target: str, precision: str, tmp_path: Path
) -> None:
    name, _, opset = target.partition("-")
    options = ExportOptions.of(target=name, opset=int(opset) if opset else None, precision=precision)
    found = export(hybrid(kind), tmp_path / "x", options)
    outputs = {each.output for each in found.verification.comparisons}
    assert {"logits", "present", "state"} <= outputs


@one_in(2)
@pytest.mark.parametrize("target", ["portable", "tensorrt"])
def test_state_beside_an_encoder_skips_padding(target: str, tmp_path: Path) -> None:
    block = {**BLOCK, "mixer": {"kind": "short_convolution"}}
    spec = t5(decoder={"layers": 1, "block": block}, context_length=10)
    found = export(spec, tmp_path / "x", ExportOptions(target=target))
    assert {"present", "state"} <= {each.output for each in found.verification.comparisons}
