"""``zoo check``: what it prints, and how it exits."""

import json

import pytest
import torch
from safetensors.torch import save_file

from specs.language.load import load
from tests.cli.process import tables
from tests.cli.program import invoke
from zoo import functional
from zoo.builder import assemble
from zoo.checks import shapes
from zoo.weights.random import RandomWeights


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs ``zoo check`` with some arguments in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return lambda *arguments: invoke("check", *arguments, *([] if "--json" in arguments else ["-v"]))


def lines(text):
    return [" ".join(line.split()) for line in text.splitlines()]


def test_check_prints_shapes_and_behaviour(run):
    result = run("tiny-gpt")
    assert (result.exit_code, result.stderr) == (0, "")
    printed = lines(result.stdout)
    assert "module kind takes gives" in printed
    assert "blocks.0-3 x4 pre_norm B x T x 64 B x T x 64" in printed
    assert "up Linear B x T x 64 B x T x 256" in printed
    assert "2 x (B x 4 x P x 16) 2 x (B x 4 x P+T x 16)" in printed
    assert "B batch, T tokens, P tokens in the cache" in printed
    assert any(line.startswith("causal passed 0 at most 1e-06 ") for line in printed)
    assert lines(tables(result.stdout))[-1].startswith(
        "behaviour: 11 passed, on the model itself, weights random"
    )


@pytest.mark.slow
def test_depth_and_unfold(run):
    shallow = lines(run("tiny-gpt", "--depth", "1").stdout)
    assert not [line for line in shallow if "blocks" in line]
    assert any(line.startswith("decoder Stack") for line in shallow)
    assert not [line for line in lines(run("tiny-gpt", "--depth", "0").stdout) if "Stack" in line]
    unfolded = lines(run("tiny-gpt", "--unfold").stdout)
    assert [line.split()[0] for line in unfolded if "pre_norm" in line] == [f"blocks.{i}" for i in range(4)]


def test_only_equal_neighbours_are_folded(run):
    layers = "decoder.layers=[{repeat: 2}, {use: wide}, {repeat: 1}]"
    wide = "decoder.blocks={wide: {feed_forward: {hidden: 99}}}"
    printed = lines(run("tiny-gpt", "--set", wide, "--set", layers).stdout)
    blocks = [line.split()[0] for line in printed if line.startswith("blocks.")]
    assert blocks == ["blocks.0-1", "blocks.2", "blocks.3"]


def test_json_has_every_module(run):
    result = run("tiny-gpt", "--depth", "1", "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == 0
    assert data["passed"] is data["shapes"]["passed"] is data["behaviour"]["passed"] is True
    rows = {row["path"]: row for row in data["shapes"]["modules"]}
    assert rows["decoder.blocks.3.feed_forward.down"]["outputs"] == ["B x T x 64"]
    checks = {check["name"]: check for check in data["behaviour"]["checks"]}
    assert checks["causal"]["status"] == "passed"
    assert checks["causal"]["figure"] <= 1e-12


@pytest.mark.slow
def test_a_failing_check_exits_with_1(run, monkeypatch):
    whole = functional.attention_bias
    monkeypatch.setattr(functional, "attention_bias", lambda *a, causal, **k: whole(*a, causal=False, **k))
    result = run("tiny-gpt")
    assert result.exit_code == 1
    assert any(line.startswith("causal failed ") for line in lines(result.stdout))
    assert " failed, on the model itself" in result.stdout
    assert json.loads(run("tiny-gpt", "--json").stdout)["passed"] is False


def test_failing_shapes_exit_with_1_and_end_there(run, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("sizes do not match")

    monkeypatch.setattr(shapes, "_run", fail)
    result = run("tiny-gpt")
    assert result.exit_code == 1
    assert lines(result.stdout)[1:] == [
        "tiny-gpt fails to run: RuntimeError: sizes do not match",
        f'at {__file__}:{fail.__code__.co_firstlineno + 1}: raise RuntimeError("sizes do not match")',
        "shapes: failed",
    ]
    data = json.loads(run("tiny-gpt", "--json").stdout)
    assert (data["passed"], data["behaviour"]) == (False, None)


@pytest.mark.slow
def test_given_weights(run, tmp_path):
    spec = load("tiny-gpt")
    model = assemble(spec)
    source = RandomWeights(model, spec, seed=3)
    tensors = {
        name: torch.cat(list(source.pieces(name))).view(p.shape) for name, p in model.named_parameters()
    }
    save_file(tensors, tmp_path / "model.safetensors")
    result = run("tiny-gpt", "--weights", "model.safetensors")
    assert result.exit_code == 0
    assert "model.safetensors" in lines(tables(result.stdout))[-1]
    assert "random, seed 7" in run("tiny-gpt", "--weights", "random", "--seed", "7").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gptt2"], "Did you mean"),
        (["tiny-gpt", "--weights", "absent.safetensors"], "'absent.safetensors' has no weights"),
        (["tiny-gpt", "--set", "decoder.block.attention.heads=5"], "must divide d_model, which is 64"),
    ],
)
def test_wrong_input_exits_with_2(run, arguments, message):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
