"""``zoo adapt`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import transformers

from tests.cli.program import done, invoke, refused

SOURCE = """\
name: source
architecture: decoder
vocab_size: 50
d_model: 16
position: {kind: rope}
decoder:
  layers: 4
  block:
    kind: pre_norm
    norm: {kind: rms_norm}
    attention: {kind: multi_head, heads: 4, bias: false}
    feed_forward: {kind: gated, hidden: 24, activation: silu, bias: false}
head: {kind: language_modeling, tie_embeddings: false}
"""


@pytest.fixture(autouse=True)
def _source(empty_directory):
    """A spec, and a checkpoint of it."""
    Path("source.yaml").write_text(SOURCE)
    done("convert", "source.yaml", "-o", "source")


def test_origins_are_printed_layer_by_layer_and_the_checkpoint_loads() -> None:
    grouped = ("--set", "decoder.block.attention={kind: grouped_query, heads: 4, kv_heads: 2, bias: false}")
    result = done(
        "adapt", "source.yaml", *grouped, "--weights", "source", "--layers", "0-3", "-o", "out", "-v"
    )
    lines = [line.split() for line in result.splitlines()]
    assert [
        "decoder.blocks.*.attention.key.weight", "0-3", "the", "same", "0-3", "mean", "of", "2", "heads", "each",
    ] in lines  # fmt: skip
    assert "39 of 39 derived from the checkpoint" in result
    assert 'transformers.LlamaForCausalLM.from_pretrained("out")' in result
    model = transformers.AutoModelForCausalLM.from_pretrained("out")
    assert model.config.num_key_value_heads == 2


def test_json_lists_every_tensor_with_its_origin() -> None:
    result = done(
        "adapt", "source.yaml", "--set", "decoder.layers=2", "--weights", "source", "--layers", "0+1,3", "--json",
    )  # fmt: skip
    data = json.loads(result)
    assert data["directory"] == "build/source+decoder.layers=2-checkpoint"
    origins = {origin["tensor"]: origin for origin in data["origins"]}
    norm = "decoder.blocks.{}.attention_norm.weight"
    assert origins[norm.format(0)] == {
        "tensor": norm.format(0),
        "sources": [norm.format(0), norm.format(1)],
        "rule": "mean of 2 layers",
    }
    assert norm.format(2) in data["unused"]


def test_a_spec_of_no_family_is_written_under_its_own_names_and_read_again() -> None:
    result = done(
        "adapt", "source.yaml", "--set", "decoder.block.kind=normed_residual", "--weights", "source", "-o", "out",
    )  # fmt: skip
    assert 'zoo.build("out/spec.yaml", "out")' in result
    assert "none: no family of transformers can express this spec" in result
    again = done(
        "adapt", "out/spec.yaml", "--set", "decoder.layers=1", "--weights", "out", "-o", "again", "-v"
    )
    assert "decoder.blocks.*.attention.key.weight of layers 1-3" in again


def test_weights_that_do_not_fit_point_to_adapt() -> None:
    message = refused("build", "source.yaml", "--set", "vocab_size=60", "--weights", "source")
    assert "To derive weights for this spec from those of the checkpoint, use zoo adapt." in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--layers", "0,9"),
            "--layers of decoder: layer 9 is beyond the 4 layers of the weights\n  Use 0 to 3.",
        ),
        (("--as", "bert"), "bert has no class with head language_modeling"),
        (("--dtype", "fp8"), "--dtype 'fp8' is unknown"),
        (("--source", "nothing.yaml"), "nothing.yaml"),
    ],
)
def test_wrong_options_are_refused_and_write_nothing(options: tuple[str, str], message: str) -> None:
    assert message in refused("adapt", "source.yaml", "--weights", "source", "-o", "out", *options)
    assert not Path("out").exists()


@pytest.mark.parametrize("spec", ["source", "source.yaml"])
def test_a_checkpoint_of_an_unknown_type_is_read_as_the_family(spec) -> None:
    config = Path("source/config.json")
    config.write_text(json.dumps(json.loads(config.read_text()) | {"model_type": "mine"}))
    Path("source/spec.yaml").unlink(missing_ok=True)
    shorter = ("adapt", spec, "--set", "decoder.layers=2", "--weights", "source", "-o", "out")
    assert "mine" in invoke(*shorter).stderr
    done(*shorter, "--as", "llama")
    assert json.loads(Path("out/config.json").read_text())["model_type"] == "llama"
