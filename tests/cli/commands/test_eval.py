"""``zoo eval``, and what ``zoo export`` tells of quality."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli.tables.quality_tables import LISTED, print_quality
from exporters.quality.quality import Cost, Quality
from exporters.quality.texts import corpus
from tests.cli.program import done, invoke, refused
from tests.exporters.quality import checkpoints
from tests.thinned import one_in


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint and two exports of it, one in int8 and one that is random."""
    place = tmp_path_factory.mktemp("eval")
    checkpoints.llama(place / "origin")
    spec, weights = place / "tiny.yaml", ["--weights", str(place / "origin")]
    for arguments in (
        ["import", place / "origin", "--name", "tiny", "-o", spec],
        ["export", spec, *weights, "--precision", "int8", "-o", place / "int8", "--no-verify"],
        ["export", spec, *weights, "-o", place / "fp32", "--no-verify"],
        ["export", spec, "--precision", "int4", "-o", place / "random", "--no-verify"],
    ):
        done(*arguments)
    (place / "text.txt").write_text(corpus()["prose"][:6000])
    return place


def test_perplexity_needs_nothing_else(place: Path) -> None:
    result = invoke("eval", place / "int8", "--data", place / "text.txt", "--json")
    data = json.loads(result.stdout)
    assert data["figures"].keys() == {"perplexity"}
    assert data["figures"]["perplexity"] > 1
    assert data["inputs"] == "text.txt, 12 x 128 tokens"


@one_in(3)
@pytest.mark.parametrize("against", ["origin", "fp32", "tiny.yaml"])
def test_all_ways_to_name_the_float_model_agree(place: Path, against: str) -> None:
    weights = ["--weights", place / "origin"] if against == "tiny.yaml" else []
    result = invoke("eval", place / "int8", "--against", place / against, *weights, "--json")
    figures = json.loads(result.stdout)["figures"]
    assert figures.keys() == {"kl", "top_token", "perplexity", "reference_perplexity"}
    again = invoke("eval", place / "int8", "--against", place / "origin", "--json")
    expected = json.loads(again.stdout)["figures"]
    assert figures == pytest.approx(expected, rel=1e-3)


def test_random_weights_are_judged_on_random_ids(place: Path) -> None:
    result = done("eval", place / "random", "-v")
    assert (
        "Quality was measured on random token ids, seed 0, against PyTorch, float32, weights random" in result
    )
    assert "KL divergence from float, nats" in result


@pytest.mark.slow
def test_the_cost_of_each_layer(place: Path) -> None:
    result = done("eval", place / "int8", "--against", place / "origin", "--per-layer", "-v")
    assert "decoder.blocks.1" in result
    assert "feed_forward.down" in result
    assert "Rounding all weights costs " in result


def test_parts_beyond_the_table_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    costs = tuple(Cost(f"decoder.blocks.{at}", 1 / (at + 1)) for at in range(LISTED + 3))
    print_quality(Quality("a text", "PyTorch", {"kl": 0.5}, layers=costs, weights=0.25))
    found = capsys.readouterr().out
    assert f"and 3 more, each at most {1 / (LISTED + 1):.2e}" in found
    assert "Rounding all weights costs 2.5e-01 of 5.0e-01" in found


def test_another_tokenizer(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "int8", tmp_path / "bare")
    tokenizer = tmp_path / "bare" / "tokenizer.json"
    tokenizer.rename(tmp_path / "tokenizer.json")
    told = refused("eval", tmp_path / "bare", "--data", place / "text.txt")
    assert "text needs a tokenizer, and there is no tokenizer.json next to the weights" in told
    found = invoke("eval", tmp_path / "bare", "--data", place / "text.txt", "--tokenizer", tmp_path, "--json")
    same = invoke("eval", place / "int8", "--data", place / "text.txt", "--json")
    assert json.loads(found.stdout)["figures"] == json.loads(same.stdout)["figures"]
    against = invoke("eval", tmp_path / "bare", "--against", place / "origin", "--json")
    assert "kl" in json.loads(against.stdout)["figures"]  # with the tokenizer of the checkpoint


def test_mutually_exclusive_options(place: Path) -> None:
    told = refused("eval", place / "int8", "--weights", place / "origin")
    assert "--weights applies only to the spec of --against.\n  Add --against, or remove the option." in told
    told = refused("eval", place / "int8", "--against", place / "tiny.yaml")
    assert "tiny has no weights to compare with\n  Name them with --weights" in told
    told = refused("eval", place / "int8", "--against", "gpt2")
    assert "tiny and gpt2 cannot be compared: vocab_size must be the same\n  value: 300 and 50257\n" in told
    told = refused("eval", place / "int8", "--per-layer")
    assert "The cost of each part needs a float model in PyTorch to compare with" in told
    told = refused("eval", place / "int8", "--against", place / "fp32", "--per-layer")
    assert "Name a spec or a checkpoint with --against, or leave out --per-layer." in told
    told = refused("eval", place / "origin")
    assert "is not an export" in told


def test_an_encoder_needs_something_to_compare_with(tmp_path: Path) -> None:
    checkpoints.bert(tmp_path / "bert")
    spec, out = tmp_path / "bert.yaml", tmp_path / "out"
    invoke("import", tmp_path / "bert", "-o", spec)
    invoke("export", spec, "--weights", tmp_path / "bert", "-o", out, "--no-verify")
    assert "needs a model to compare with, as it does not score next tokens" in refused("eval", out)


@pytest.mark.slow
def test_an_export_past_its_budget(place: Path, tmp_path: Path) -> None:
    arguments = [
        "export", place / "tiny.yaml", "--weights", place / "origin", "--precision", "int4", "--max-kl", "1e-9",
    ]  # fmt: skip
    result = invoke(*arguments, "-o", tmp_path / "out")
    assert result.exit_code == 1, result.output
    assert "at most 1e-09" in result.stdout
    assert "int4 loses too much: " in result.stderr
    assert "Raise the budget with --max-kl or --min-cosine.\nNothing was written." in result.stderr
    assert not (tmp_path / "out").exists()
    result = invoke(*arguments, "-o", tmp_path / "out", "--json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data["quality"]["passed"] is False
    assert data["quality"]["layers"]


@pytest.mark.slow
def test_an_export_shows_its_quality(place: Path, tmp_path: Path) -> None:
    arguments = ["export", place / "tiny.yaml", "--weights", place / "origin", "--precision", "int8"]
    result = done(*arguments, "-o", tmp_path / "out", "--calibrate", place / "text.txt", "-v")
    assert "at most 0.05" in result
    assert "Quality was measured on text.txt, " in result
