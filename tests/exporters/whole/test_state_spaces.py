"""State space models and linear attention for every target in every precision: they are verified, and the operations are those of the target."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import pytest
import torch

from exporters.export import export
from exporters.graph.precisions import PRECISIONS
from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS
from specs.language.load import load
from tests.thinned import one_in

MIXERS = {
    "mamba2": "{kind: mamba2, heads: 4, head_dim: 16, state_size: 16, groups: 2, step_limit: {least: 0.01, most: 0.5}}",
    "mamba": "{kind: mamba, width: 64, step_rank: 4, state_size: 8, norm: {kind: rms_norm, weight: false}}",
    "rg_lru": "{kind: rg_lru, width: 64, heads: 4}",
    "linear_attention": "{kind: linear_attention, heads: 4, key_width: 16, value_width: 16}",
    "retention": "{kind: linear_attention, heads: 4, key_width: 16, value_width: 32, activation: identity, gate: silu, "
    "decay: {kind: retention}, output_norm: {norm: {kind: rms_norm, weight: false}, over: head}}",
}
FUSED = [name for name, target in TARGETS.items() if target.takes("LinearAttention", torch.float32)]
GRID = [
    (name, target, precision)
    for name in MIXERS
    for target in TARGETS
    for precision in PRECISIONS
    if precision not in TARGETS[target].unsupported_precisions
]


@one_in(234)
@pytest.mark.parametrize(("name", "target", "precision"), GRID)
def test_a_state_space_model_is_exported_and_verified(
    name: str, target: str, precision: str, tmp_path: Path
) -> None:
    changes = [
        "position={kind: none}",
        "decoder.block.attention=null",
        f"decoder.block.mixer={MIXERS[name]}",
        "decoder.layers=2",
    ]
    slots = 32 if TARGETS[target].static_cache else None
    options = ExportOptions.of(target=target, precision=precision, cache_length=slots)
    result = export(load("tiny-gpt", changes), tmp_path / "x", options)
    found = Counter(
        node.op_type for node in onnx.load(tmp_path / "x/model.onnx", load_external_data=False).graph.node
    )
    fused = name in ("mamba2", "linear_attention", "retention") and target in FUSED
    assert (found["LinearAttention"], found["Scan"]) == ((2, 0) if fused else (0, 2))
    (facts,) = result.graphs.values()
    reasons = [reason for reason in facts["unfused"] if reason.startswith("LinearAttention")]
    assert len(reasons) == int(target in FUSED and not fused)


ONE_MIXER = ["position={kind: none}", "decoder.block.attention=null", "decoder.layers=1"]


@one_in(2)
@pytest.mark.parametrize("heads", [2, 4])
def test_each_head_of_mamba_is_scanned_by_itself(heads: int, tmp_path: Path) -> None:
    mixer = (
        f"{{kind: mamba, width: 64, step_rank: 4, state_size: 8, heads: {heads}, norm: {{kind: rms_norm}}}}"
    )
    export(load("tiny-gpt", [*ONE_MIXER, f"decoder.block.mixer={mixer}"]), tmp_path / "x", ExportOptions())
    model = onnx.load(tmp_path / "x/model.onnx", load_external_data=False)
    assert [node.op_type for node in model.graph.node].count("Scan") == heads


@pytest.mark.slow
def test_a_generalized_delta_rule_is_not_fused(tmp_path: Path) -> None:
    mixer = "{kind: rwkv7, heads: 4, head_dim: 16, decay_rank: 4, update_rank: 4, gate_rank: 4}"
    spec = load("tiny-gpt", [*ONE_MIXER, f"decoder.block.mixer={mixer}"])
    (facts,) = export(spec, tmp_path / "x", ExportOptions(target="cpu")).graphs.values()
    assert (
        "LinearAttention: decoder.blocks.0.mixer: it erases along the key that it recalls by"
        in facts["unfused"]
    )
