"""Every slot takes a plugin's kind: a minimal one in each builds, is reported, exports and verifies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import transformers

from specs.base import registry
from specs.model.model import Model
from tests.cli.process import environment
from tests.test_plugin import installed

DOORSTOP = Path(__file__).parent / "doorstop"

SPEC = """
name: {slot}-doorstop
architecture: {architecture}
vocab_size: 50
d_model: 16
context_length: 32
position: {position}
embedding: {embedding}
{stack}:
  layers: 2
  block:
    kind: {block}
    norm: {norm}
    attention: {attention}
    mixer: {mixer}
    feed_forward: {feed_forward}
    residual: {residual}
head: {head}
initialization: {initialization}
image: {image}
connector: {connector}
"""

OTHERS = {"architecture": "decoder", "stack": "decoder", "image": "null"}
BUILT_IN = {
    "connector": "null",
    "position": "{kind: rope}",
    "embedding": "{kind: tokens}",
    "block": "pre_norm",
    "norm": "{kind: layer_norm}",
    "attention": "{kind: multi_head, heads: 2}",
    "mixer": "null",
    "feed_forward": "{kind: mlp, hidden: 32, activation: gelu}",
    "residual": "{kind: add}",
    "head": "{kind: language_modeling}",
    "initialization": "{kind: normal}",
}
IMAGE = """
  d_model: 24
  position: {kind: learned}
  embedding: {kind: patches, image_size: 8, patch_size: 4}
  layers: 1
  block:
    kind: pre_norm
    norm: {kind: layer_norm}
    attention: {kind: multi_head, heads: 2}
    feed_forward: {kind: mlp, hidden: 32, activation: gelu}
"""
PLUGIN = {
    "attention": {"attention": "{kind: doorstop, heads: 2}"},
    "block": {"block": "doorstop"},
    "connector": {"architecture": "vision-language", "image": IMAGE, "connector": "{kind: doorstop, token: 49}"},
    "decay": {
        "position": "{kind: none}",
        "attention": "null",
        "mixer": "{kind: linear_attention, heads: 2, key_width: 8, value_width: 8, decay: {kind: doorstop}}",
    },
    "mixer": {"position": "{kind: none}", "attention": "null", "mixer": "{kind: doorstop}"},
    "recurrent": {
        "architecture": "encoder",
        "stack": "encoder",
        "head": "{kind: spans, label_token: 49, max_width: 2, recurrent: {kind: doorstop}}",
    },
    "rope_scaling": {"position": "{kind: rope, scaling: {kind: doorstop}}"},
}  # fmt: skip
"""What the spec of a slot's plugin changes, where that is not ``slot: {kind: doorstop}``."""
SLOTS = sorted(registry.slots())

DRAWN = {
    "attention": ["Negated attention", "times -1"],
    "connector": ["Cut", "the first 16 of 24"],
    "decay": ["decay: doorstop"],
    "embedding": ["Doubled"],
    "feed_forward": ["Bottleneck", "16 → 8 → 16"],
    "head": ["Pair of scores", "16 → 2", "Two logits"],
    "mixer": ["Moving average", "keeps 50% per token"],
    "norm": ["DyT"],
    "position": ["Ramp", "one vector of 16"],
    "recurrent": ["Scaled words"],
    "rope_scaling": ["three times slower"],
}
"""The words of its kind that the drawing of a slot's plugin has; the other slots have no part of their own in drawings."""


RUN = """
import json, sys
from typer.testing import CliRunner
from cli.app import app
results = [CliRunner().invoke(app, arguments, prog_name="zoo") for arguments in json.load(sys.stdin)]
json.dump([(each.exit_code, each.stdout, each.stderr) for each in results], sys.stdout)
"""
"""Runs commands one after another, in a process that starts with the plugin."""

Ended = tuple[int, str, str]
"""The exit status of a command, and what it wrote to its two streams."""


def with_plugin(commands: Sequence[Sequence[str]], place: Path) -> list[Ended]:
    """How each command ended, one after another in a process that starts with the plugin, which is installed at a place."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(commands), capture_output=True, text=True, check=True,
        env=environment(PYTHONPATH=os.pathsep.join([str(installed(DOORSTOP, place)), str(Path.cwd())])),
    )  # fmt: skip
    ended: list[Ended] = json.loads(done.stdout)
    return ended


def test_every_slot_is_tested() -> None:
    assert Model.model_fields  # which registers the slots
    assert {*BUILT_IN, "decay", "recurrent", "rope_scaling"} == set(registry.slots())


@pytest.mark.slow
@pytest.mark.parametrize("slot", SLOTS)
def test_a_plugin_builds_checks_reports_exports_and_verifies(slot: str, tmp_path: Path) -> None:
    path = tmp_path / f"{slot}.yaml"
    changes = PLUGIN.get(slot, {slot: "{kind: doorstop}"})
    path.write_text(SPEC.format(slot=slot, **{**OTHERS, **BUILT_IN, **changes}))
    commands = [
        ["build", str(path), "-o", str(tmp_path / "exported"), "--json"],
        ["report", str(path), "--json"],
        ["draw", str(path), "-o", str(tmp_path / "drawn.svg")],
        ["report", str(path), "--html", str(tmp_path / "report.html")],
        ["convert", str(path), "--remote-code", "-o", str(tmp_path / "code"), "--json"],
    ]
    build, report, draw, page, code = with_plugin(commands, tmp_path)
    assert build[0] == 0, build[1][-3000:] + build[2][-3000:]
    result = json.loads(build[1])
    assert result["behaviour"]["passed"]
    assert result["export"]["verification"]["passed"]
    assert code[0] == 0, code[1][-3000:] + code[2][-3000:]
    autos = json.loads((tmp_path / "code" / "config.json").read_text())["auto_map"]
    load = getattr(transformers, [*autos][-1]).from_pretrained
    assert load(tmp_path / "code", trust_remote_code=True).num_parameters() > 0  # without the plugin

    assert report[0] == 0, report[2]
    assert json.loads(report[1])["parameters"]["total"] == result["parameters"]["total_parameters"]

    assert (draw[0], page[0]) == (0, 0), draw[2] + page[2]
    drawing = (tmp_path / "drawn.svg").read_text("utf-8")
    assert [words for words in DRAWN.get(slot, []) if words not in drawing] == []
    if slot == "position":
        assert "Adds the position times a trained vector." in (tmp_path / "report.html").read_text("utf-8")
