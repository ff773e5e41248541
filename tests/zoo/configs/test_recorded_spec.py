"""Weights of a distributed checkpoint are read by the spec that it records, or by one that computes the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import zoo
from specs.language.load import load
from specs.language.preset_files import preset_names
from tests.cli.program import done, refused
from tests.thinned import one_in
from tests.zoo.tiny import gpt2
from zoo.configs.recorded_spec import check_recorded_spec, record_spec, recorded_spec

SPEC = """\
extends: gpt2
name: mine
vocab_size: 64
d_model: 16
context_length: 32
decoder: {layers: 2, block: {attention: {heads: 2}, feed_forward: {hidden: 32}}}
"""


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint of mine.yaml that one process wrote."""
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(SPEC)
    zoo.save_checkpoint(zoo.build("mine.yaml", "random", seed=3), "saved")
    return Path("saved")


@pytest.mark.parametrize(
    "command",
    [("convert", "-o", "out"), ("export", "-o", "out"), ("check",), ("attend", "--ids", "1,2", "-o", "out.html")],
)  # fmt: skip
def test_another_forward_is_refused_wherever_weights_are_read(saved: Path, command: tuple[str, ...]) -> None:
    name, *options = command
    Path("relu.yaml").write_text(
        "extends: mine.yaml\nname: relu\ndecoder: {block: {feed_forward: {activation: relu}}}\n"
    )
    message = refused(name, "relu.yaml", "--weights", str(saved), *options)
    assert message == (
        "saved is a checkpoint of another spec\n"
        "  decoder.layers[*].feed_forward.activation: 'relu' (recorded: 'gelu_tanh')\n"
        "  Use the spec in saved/spec.json, or derive weights for relu with zoo adapt.\n"
    )
    assert not [*Path().glob("out*")]


def test_many_differences_are_counted(saved: Path) -> None:
    changes = {"kind": "rms_norm", "eps": 0.5}
    other = gpt2(vocab_size=7)
    with pytest.raises(
        zoo.WeightError, match=r"(?s)is a checkpoint of another spec\n  .*\n  \.\.\. and \d+ more\n"
    ):
        check_recorded_spec(saved, other)
    normed = load("mine.yaml", [f"decoder.block.norm={changes}".replace("'", "")])
    with pytest.raises(zoo.WeightError, match=r"'rms_norm' \(recorded: 'layer_norm'\)"):
        zoo.build(normed, str(saved))


def test_what_changes_no_value_may_differ(saved: Path) -> None:
    other = load(
        "mine.yaml",
        ["name=another", "summary=words", "initialization.kind=normal",
         "initialization.std=0.5", "decoder.block.dropout=0.1", "year=2001"],
    )  # fmt: skip
    ours: Any = zoo.build("mine.yaml", str(saved))
    theirs: Any = zoo.build(other, str(saved))
    ids = torch.arange(6)[None]
    assert torch.equal(ours.eval()(ids)["logits"], theirs.eval()(ids)["logits"])


def test_a_variant_is_derived_from_the_recorded_spec(saved: Path, tmp_path: Path) -> None:
    spec = "decoder.block.feed_forward.activation=relu"
    done("adapt", "mine.yaml", "--set", spec, "--weights", str(saved), "-o", "adapted")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"{", "the file: Invalid JSON"), (b'{"name": "a"}', "architecture: Field required")],
)
def test_a_damaged_record_is_refused(saved: Path, content: bytes, message: str) -> None:
    (saved / "spec.json").write_bytes(content)
    with pytest.raises(zoo.WeightError, match=f"saved/spec.json is no spec: {re.escape(message)}") as caught:
        zoo.build("mine.yaml", str(saved))
    assert str(caught.value).endswith("\n  Copy the checkpoint again, or save it again.")


def test_a_directory_without_a_record_is_read(saved: Path) -> None:
    (saved / "spec.json").unlink()
    zoo.build("mine.yaml", str(saved))
    (saved / "spec.json").mkdir()
    with pytest.raises(zoo.WeightError, match=r"saved/spec.json cannot be read: it is a directory"):
        zoo.build("mine.yaml", str(saved))


@one_in(20)
@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_recorded_whole(name: str, tmp_path: Path) -> None:
    record_spec(tmp_path, load(name))
    assert recorded_spec(tmp_path) == load(name)
    check_recorded_spec(tmp_path, load(name))
