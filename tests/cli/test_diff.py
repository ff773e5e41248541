"""``zoo diff`` as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app import app

LIKE_LLAMA = [
    "position.kind=rope", "decoder.block.norm.kind=rms_norm",
    "decoder.block.feed_forward.kind=gated", "decoder.block.feed_forward.activation=silu",
]  # fmt: skip
SETS = [part for change in LIKE_LLAMA for part in ("--set", change)]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs ``zoo`` with some arguments in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return lambda *arguments: CliRunner().invoke(app, [*map(str, arguments)], prog_name="zoo")


@pytest.fixture(scope="module")
def exports(tmp_path_factory) -> Path:
    """A directory with three exports of a tiny model: one, the same again, and one in int8."""
    place = tmp_path_factory.mktemp("exports")
    for name, options in {"one": [], "again": [], "int8": ["--precision", "int8"]}.items():
        arguments = ["export", "tiny-gpt", "--no-verify", *options, "-o", str(place / name)]
        assert CliRunner().invoke(app, arguments).exit_code == 0
    return place


# ------------------------------------------------------------------------------------------------------- output


GOLDEN = """\
--- A gpt2: decoder, 12 layers, 768 wide
+++ B gpt2+position.kind=rope+decoder.block.norm.kind=rms_norm+dec…: decoder, 12 layers, 768 wide
- position: {kind: learned, offset: 0}
+ position: {kind: rope, theta: 10000.0, dimensions: 64, layout: half_split}
- decoder.block.feed_forward: {kind: mlp, hidden: 3072, activation: gelu_tanh, bias: true, dropout: 0.0}
+ decoder.block.feed_forward: {kind: gated, hidden: 3072, activation: silu, bias: true, dropout: 0.0}
- decoder.block.norm: {kind: layer_norm, eps: 1.0e-05, weight: true, bias: true}
+ decoder.block.norm: {kind: rms_norm, eps: 1.0e-05, unit_offset: false}

"""


def test_gpt2_against_a_variant_with_the_parts_of_llama(run):
    result = run("diff", "gpt2", *SETS)
    assert result.exit_code == 1
    assert result.stdout.startswith(GOLDEN)
