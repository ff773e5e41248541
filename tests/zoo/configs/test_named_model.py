"""A model as a user names it: a preset, a file, a checkpoint, a repository of the hub or an export."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import zoo
from tests.cli.process import environment
from tests.cli.process import zoo as program
from tests.cli.program import done, invoke, refused
from tests.zoo.checkpoints.gguf_files import write
from zoo.configs.named_model import model_kind, named_model

COMMIT = "a" * 40


@pytest.fixture(scope="module")
def llama() -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=90, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=32,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llama: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    llama.save_pretrained("mine")
    return tmp_path


@pytest.fixture
def offline(here: Path) -> dict[str, str]:
    """The environment of a machine whose hub cache has the checkpoint as org/tiny, and no network."""
    repository = here / "hub" / "hub" / "models--org--tiny"
    shutil.copytree(here / "mine", repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    shutil.rmtree(here / "mine")
    places = {
        "HF_HOME": here / "hub",
        "ZOO_CACHE_DIR": here / "cache",
        "PYTHONPATH": Path(__file__).parents[3],
    }
    return environment(HF_HUB_OFFLINE="1", **{name: str(path) for name, path in places.items()})


@pytest.mark.parametrize("form", ["mine", "./mine/", "mine/config.json"])
def test_a_checkpoint_stands_for_its_spec_and_brings_its_weights(here: Path, llama: Any, form: str) -> None:
    named = named_model(form)
    assert (named.kind, named.spec.name, named.spec.d_model) == ("checkpoint", "mine", 16)
    assert Path(named.weights(None)) == Path("mine")
    assert named.weights("random") == "random"
    ids = torch.tensor([[1, 5, 7, 2]])
    model: Any = zoo.build(form)
    torch.testing.assert_close(model(ids)["logits"], llama(ids).logits, rtol=1e-5, atol=1e-5)
    assert next(zoo.build(zoo.load(form)).parameters()).is_meta


def test_a_config_alone_has_no_weights(here: Path) -> None:
    (here / "mine" / "model.safetensors").unlink()
    assert named_model("mine").weights(None) == "random"
    assert next(zoo.build("mine").parameters()).is_meta


def test_assignments_and_a_name_change_a_checkpoint(here: Path) -> None:
    named = named_model("mine", ["decoder.block.dropout=0.1"])
    assert named.spec.name == "mine+decoder.block.dropout=0.1"
    assert named.spec.summary == "Variant of mine: decoder.block.dropout=0.1"
    assert named_model("mine", ["decoder.block.dropout=0.1"], "own").spec.name == "own"
    zoo.build("mine")  # its weights fit
    with pytest.raises(zoo.WeightError, match="16"):
        zoo.build(zoo.load("mine", ["decoder.block.feed_forward.hidden=8"]), weights="mine")


def test_a_wrong_name_is_told_with_its_option(here: Path) -> None:
    assert refused("show", "gpt2", "--name", "a b").startswith("--name a b: name: ")


def test_paths_come_before_the_hub_and_presets_before_directories(here: Path) -> None:
    shutil.copytree("mine", "org/gpt2")
    shutil.copytree("mine", "gpt2")
    assert named_model("org/gpt2").spec.d_model == 16  # a path, not a repository
    assert named_model("gpt2").spec.d_model == 768
    assert named_model("./gpt2").spec.d_model == 16
    Path("org/gpt2.yaml").write_text("extends: bert-base\nname: other\n")
    assert named_model("org/gpt2.yaml").spec.name == "other"


def test_a_conversion_without_a_config_is_a_checkpoint(here: Path) -> None:
    done("adapt", "mine", "--set", "decoder.block.kind=post_norm", "-o", "made")
    assert not Path("made/config.json").exists()
    assert (model_kind("made"), named_model("made").own_weights) == ("checkpoint", "made")
    assert next(zoo.build("made").parameters()).is_meta is False


@pytest.mark.parametrize(
    ("reference", "lines"),
    [
        ("gtp2", ["A model must be a preset, a file, a checkpoint or a hub repository", "Did you mean 'gpt2'?",
                  "a YAML file, a checkpoint or a GGUF file, or ORG/NAME of a hub repository"]),
        ("mine/model.safetensors", ["has weights and no config.", "Name its directory", "--weights mine/model.safetensors"]),
        ("empty", ["it has no export.json, no config.json and no spec.yaml", "a checkpoint, a preset or a YAML file"]),
        ("mine/nothing.yaml", ["mine/nothing.yaml: the file must exist"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["show", "params", "export", "draw"])
def test_what_names_nothing_is_told_alike(here: Path, command: str, reference: str, lines: list[str]) -> None:
    Path("empty").mkdir()
    message = refused(command, reference)
    for line in lines:
        assert line in message


@pytest.mark.slow
def test_every_command_takes_a_checkpoint(here: Path) -> None:
    for command in (["show"], ["validate"], ["params"], ["report"], ["draw", "-o", "-"], ["diff", "mine"],
                    ["new", "copy", "--like"]):  # fmt: skip
        done(*command, "mine")
    assert "  mine: {weights: mine}" in (invoke("init", "mine"), Path("zoo.yaml").read_text())[1]


@pytest.mark.slow
def test_commands_that_take_weights_use_those_of_the_checkpoint_and_say_so(here: Path) -> None:

    for command in (["check", "mine"], ["convert", "mine", "-o", "converted"], ["export", "mine", "-o", "out"],
                    ["build", "mine", "-o", "built", "--name", "own"]):  # fmt: skip
        result = invoke(*command)
        assert result.exit_code == 0, result.stderr
        assert re.search(r"(?m)^  (weights|ran on|params) .*\bmine$", result.stdout), result.stdout
    for directory in ("out", "built"):
        assert json.loads(Path(directory, "export.json").read_text())["weights"] == "checkpoint"
        assert json.loads(Path(directory, "build.json").read_text())["weights_from"].split()[0] == "mine"
    assert "--weights" not in result.stdout.partition("is ready in")[2]  # the next steps
    drawn = invoke("export", "mine", "--weights", "random", "-o", "drawn", "--name", "own")
    assert "  zoo export mine --name own --weights random -o drawn -v " in drawn.stdout
    assert json.loads(Path("drawn/export.json").read_text())["weights"] == "random"
    refused = invoke("export", "out", "-o", "again")
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (
        2,
        "out is an export, and its weights are in its graphs.",
    )
    done("params", "out")
    with pytest.raises(zoo.UserError, match="out is an export"):
        zoo.export("out", "again")
    assert zoo.export("mine", "python").directory == Path("python")
    assert json.loads(Path("python/export.json").read_text())["weights"] == "checkpoint"


@pytest.mark.slow
def test_a_repository_in_the_cache_is_a_spec_with_weights(here: Path, offline: dict[str, str]) -> None:
    shown = program("show", "org/tiny", env=offline)
    assert (shown.returncode, shown.stdout.splitlines()[0]) == (0, "name: tiny")
    built = program("export", "org/tiny", env=offline)
    assert built.returncode == 0, built.stderr
    record = json.loads(Path("build/tiny/build.json").read_text())
    assert record["weights_from"].startswith(f"org/tiny@{COMMIT[:7]}")
    missing = program("export", "org/other", env=offline)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.startswith("org/other is not on this machine, and the hub cannot be reached")
    assert missing.stderr.splitlines()[1].startswith("  Check the network, or pass the path")


@pytest.mark.slow
def test_a_repository_of_gguf_files_stands_for_the_file_that_is_named(
    here: Path, offline: dict[str, str], llama: Any
) -> None:
    snapshot = here / "hub" / "hub" / "models--org--tiny" / "snapshots" / COMMIT
    for file in snapshot.iterdir():
        file.unlink()
    write(llama, snapshot / "tiny-F32.gguf")
    shown = program("show", "org/tiny", env=offline)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "name: tiny-F32\n" in shown.stdout
    shutil.copy(snapshot / "tiny-F32.gguf", snapshot / "tiny-other.gguf")
    for command in ("show", "build", "export"):
        refused = program(command, "org/tiny", env=offline)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith(
            "org/tiny on the hub has 2 GGUF files\n  Name one, by its file or by"
        )
    exported = program("export", "org/tiny:F32", "-o", "out", env=offline)
    assert exported.returncode == 0, exported.stderr
    assert json.loads(Path("out/export.json").read_text())["weights"] == "checkpoint"
    origin = json.loads(Path("out/build.json").read_text())["weights_from"]
    assert origin.startswith(f"org/tiny@{COMMIT[:7]}/tiny-F32.gguf")
    Path("zoo.yaml").write_text("models:\n  a: {spec: org/tiny/tiny-F32.gguf}\n")
    made = program("make", "--json", env=offline)
    assert made.returncode == 0, made.stdout
    assert json.loads(Path("build/a/portable-fp32/export.json").read_text())["weights"] == "checkpoint"
    assert json.loads(Path("zoo.lock").read_text())["repositories"] == {"org/tiny@main": COMMIT}


@pytest.mark.slow
def test_a_zoo_file_takes_checkpoints_and_repositories_as_specs(
    here: Path, offline: dict[str, str], llama: Any
) -> None:
    llama.save_pretrained("mine")
    Path("zoo.yaml").write_text(
        "models:\n  a: {spec: mine}\n  b: {spec: org/tiny}\n  c: {weights: mine, set: [decoder.block.dropout=0.1]}\n"
        "  d: {spec: mine, weights: random}\n"
    )
    made = program("make", "--json", env=offline)
    assert made.returncode == 0, made.stdout
    records = {
        name: json.loads(Path(f"build/{name}/portable-fp32/export.json").read_text()) for name in "abcd"
    }
    assert [record["weights"] for record in records.values()] == ["checkpoint"] * 3 + ["random"]
    lock = json.loads(Path("zoo.lock").read_text())
    assert lock["repositories"] == {"org/tiny@main": COMMIT}
    assert "dropout: 0.1" in Path("build/c/portable-fp32/spec.yaml").read_text()
