"""The doorstop of mixers: a plugin's mixer with a state of its own works in every command, alone, beside attention and in turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.test_doorstop import Ended, with_plugin

SPEC = """
name: {name}
architecture: decoder
vocab_size: 50
d_model: 16
context_length: 64
position: {position}
decoder:
  layers: {layers}
  block:
    kind: {block}
    norm: {{kind: rms_norm}}
    attention: {attention}
    mixer: {{kind: doorstop, keeps: 0.75}}
    feed_forward: {feed_forward}
  blocks: {blocks}
head: {{kind: language_modeling}}
"""

MLP, ATTENTION = "{kind: mlp, hidden: 32, activation: gelu}", "{kind: multi_head, heads: 2}"
ALTERNATING = {
    "position": "{kind: rope}",
    "attention": "null",
    "layers": "[{repeat: 1}, {use: full}]",
    "blocks": "{full: {attention: {kind: multi_head, heads: 2}, mixer: null}}",
}
MODELS: dict[str, dict[str, str]] = {
    "alone": {"layers": "2", "attention": "null", "feed_forward": "null"},
    "side-by-side": {"position": "{kind: rope}", "layers": "2", "block": "parallel"},
    "in-turn": ALTERNATING,
    "in-turn-sandwich": {**ALTERNATING, "block": "sandwich"},
}
USUAL = {
    "position": "{kind: none}", "attention": ATTENTION, "feed_forward": MLP, "block": "pre_norm", "blocks": "{}",
}  # fmt: skip

COMMANDS: dict[str, list[str]] = {
    "params": ["params", "SPEC", "--json"],
    "check": ["check", "SPEC", "--json"],
    "report": ["report", "SPEC", "--json"],
    "page": ["report", "SPEC", "--html", "OUT.html"],
    "draw": ["draw", "SPEC", "-o", "OUT.svg"],
    "portable": ["export", "SPEC", "-o", "OUT-portable", "--json"],
    "cpu": ["export", "SPEC", "-o", "OUT-cpu", "--target", "cpu", "--json"],
    "static": ["export", "SPEC", "-o", "OUT-rt", "--target", "tensorrt", "--cache-length", "32", "--json"],
    "run": ["run", "OUT-portable", "--ids", "1,2,3", "--max-new-tokens", "8", "--json"],
    "run on cpu": ["run", "OUT-cpu", "--ids", "1,2,3", "--max-new-tokens", "8", "--json"],
    "diff": ["diff", "SPEC", "tiny-gpt", "--json"],
    "code": ["convert", "SPEC", "--remote-code", "-o", "OUT-code", "--json"],
}


def said(command: str, ended: Ended) -> Any:
    status, out, err = ended
    assert status == (1 if command == "diff" else 0), out[-3000:] + err[-3000:]
    return json.loads(out) if COMMANDS[command][-1] == "--json" else out


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_command_takes_a_mixer_with_a_state_of_its_own(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.yaml"
    path.write_text(SPEC.format(name=name, **{**USUAL, **MODELS[name]}))
    commands = [
        [word.replace("SPEC", str(path)).replace("OUT", str(tmp_path / name)) for word in words]
        for words in COMMANDS.values()
    ]
    results = zip(COMMANDS, with_plugin(commands, tmp_path), strict=True)
    told = {command: said(command, ended) for command, ended in results}
    assert told["check"]["behaviour"]["passed"]
    for target in ("portable", "cpu", "static"):
        assert told[target]["verification"]["passed"]
    (written,) = told["run"]["sequences"]
    assert len(written["ids"]) == 8
    assert told["run on cpu"]["sequences"] == [written]
    states = 2 if name in ("alone", "side-by-side") else 1
    assert told["report"]["memory"]["cache"]["state_bytes"] == states * 16 * 2
    assert told["params"]["total_parameters"] > 0
    code = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / f"{name}-code", trust_remote_code=True
    )
    ids = torch.tensor([[1, 2, 3]])
    new = code.generate(ids, max_new_tokens=8, do_sample=False, pad_token_id=0, eos_token_id=None)
    assert new[0, 3:].tolist() == written["ids"]  # without the plugin
