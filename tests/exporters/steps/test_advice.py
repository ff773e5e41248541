"""What one changed line would fuse, shown by making the change."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporters.steps.advice import advice
from exporters.steps.graphs import Graphs
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from specs.language.load import load
from tests.cli.program import as_json, done
from zoo.core.reduced import fewer_layers

NARROW = ["decoder.block.attention.heads=64"]
"""Heads of GPT-2 that are 12 wide: GroupQueryAttention takes multiples of 8."""


def _operations(spec: str, assignments: list[str], options: ExportOptions) -> set[str]:
    graphs = Graphs.of(Plan.make(fewer_layers(load(spec, assignments)), options)).graphs
    return {node.op for graph in graphs for node in graph.nodes}


def test_wider_heads_are_advised_and_fuse() -> None:
    options = ExportOptions(target="cuda", precision="fp16")
    (found,) = advice(load("gpt2", NARROW), options)
    assert str(found) == "heads 32 wide instead of 12: GroupQueryAttention"
    assert "GroupQueryAttention" not in _operations("gpt2", NARROW, options)
    changed = [*NARROW, "decoder.block.attention.head_dim=32"]
    assert "GroupQueryAttention" in _operations("gpt2", changed, options)


def test_half_precision_is_advised_where_kernels_exist_in_it_alone() -> None:
    (found,) = advice(load("gpt2"), ExportOptions(target="cuda"))
    assert (found.change, found.fuses) == ("--precision fp16", ("GroupQueryAttention",))


@pytest.mark.parametrize("target", ["portable", "cpu", "tensorrt"])
def test_nothing_is_advised_where_all_is_fused(target: str) -> None:
    assert advice(load("gpt2"), ExportOptions(target=target, precision="fp16")) == []


def test_no_width_helps_keys_and_values_of_different_widths() -> None:
    """Latent attention has several widths in a head, none of which is advised."""
    assert advice(load("deepseek-v2-lite"), ExportOptions(target="cuda", precision="fp16")) == []


def test_the_commands_print_the_advice(tmp_path: Path) -> None:
    assignments = [part for each in ("decoder.layers=2", *NARROW) for part in ("--set", each)]
    told = done("report", "gpt2", *assignments, "--target", "cuda", "--device", "l4", "-v")
    assert "heads 32 wide instead of 12: GroupQueryAttention" in told
    command = ["export", "tiny-gpt", "--target", "cuda", "--no-verify", "-o", str(tmp_path / "x")]
    assert "--precision fp16 would fuse GroupQueryAttention" in done(*command)
    tables = done(*command, "-v")
    assert "One change would fuse more: --precision fp16: GroupQueryAttention" in tables
    stated = as_json(*command)
    assert stated["advice"] == [{"change": "--precision fp16", "fuses": ["GroupQueryAttention"]}]
