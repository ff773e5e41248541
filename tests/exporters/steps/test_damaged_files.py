"""Damaged files that accompany weights: refused before anything is written, as nobody would read them before the client."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import zoo
from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec

TINY = (
    "d_model=32",
    "decoder.layers=1",
    "decoder.block.attention.heads=2",
    "vocab_size=64",
    "context_length=32",
)

DAMAGED = {
    "tokenizer.json": ('{"version": "1.0", "model": {"vocab"', "is not a JSON object"),
    "tokenizer_config.json": ("<html>", "is not a JSON object"),
    "generation_config.json": ("[]", "is not a JSON object"),
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint"
    path.mkdir()
    convert(zoo.load("gpt2", TINY), "random", path)
    return path


def message(checkpoint: Path, name: str, rule: str) -> str:
    return rf"^{re.escape(str(checkpoint / name))} {rule}\n  Copy the file again from where it came, or remove it\.$"


@pytest.mark.parametrize("name", DAMAGED)
def test_exports_and_conversions_refuse_a_damaged_file(name: str, checkpoint: Path, tmp_path: Path) -> None:
    content, rule = DAMAGED[name]
    (checkpoint / name).write_text(content)
    spec, written = import_spec(checkpoint), tmp_path / "written"
    with pytest.raises(UserError, match=message(checkpoint, name, rule)):
        export(spec, written, ExportOptions(weights=str(checkpoint), verify=False))
    assert not written.exists()
    written.mkdir()
    with pytest.raises(UserError, match=message(checkpoint, name, rule)):
        convert(spec, str(checkpoint), written)
    assert not list(written.iterdir())
