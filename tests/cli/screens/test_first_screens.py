"""The default screens of build, export, verify, run, import, convert and adapt, as printed at 80 columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from exporters.verification.result import OutputComparison, Verification, VerificationError
from tests.cli.screens.screens import Zoo, check_screen, check_size, next_steps, zoo_in

QUICK = ("run", "verify")
"""Commands among next steps that take no time."""

SPEC = """
name: mine
architecture: decoder
vocab_size: 64
context_length: 32
d_model: 16
decoder:
  layers: 1
  block: {kind: pre_norm, norm: {kind: layer_norm}, attention: {kind: multi_head, heads: 2}, feed_forward: {kind: mlp, hidden: 32, activation: gelu}}
expect: {parameters: 5}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which the commands of this module run, one after the other."""
    return tmp_path_factory.mktemp("screens")


@pytest.fixture
def zoo(place: Path, monkeypatch: pytest.MonkeyPatch) -> Zoo:
    """Run a command that ends with a status, and return what it prints to both streams."""
    return zoo_in(place, monkeypatch)


def check_steps(zoo: Zoo, output: str) -> None:
    """Run the quick commands that a screen proposes."""
    steps = [arguments for arguments in next_steps(output) if arguments[0] in QUICK]
    assert steps
    for arguments in steps:
        zoo(*arguments)


def test_build(zoo: Zoo) -> None:
    output = zoo("build", "tiny-gpt")
    check_screen("build-tiny-gpt", output)
    check_steps(zoo, output)


def test_verify_of_what_was_built(zoo: Zoo, place: Path) -> None:
    if not (place / "build/tiny-gpt").exists():
        zoo("build", "tiny-gpt", "-q")
    check_screen("verify", zoo("verify", "build/tiny-gpt"))
    check_screen("run", zoo("run", "build/tiny-gpt", "--ids", "1,2,3", "--max-new-tokens", "4"))
    assert zoo("run", "build/tiny-gpt", "--ids", "1,2,3", "--max-new-tokens", "4", "-q").count("\n") == 1
    data = place / "build/tiny-gpt/model.onnx.data"
    data.write_bytes(bytes(data.stat().st_size))
    check_screen("verify-changed", zoo("verify", "build/tiny-gpt", status=1))


def test_build_that_fails_ends_with_its_failure_and_the_remedy(zoo: Zoo, place: Path) -> None:
    (place / "mine.yaml").write_text(SPEC)
    check_screen("build-unexpected", zoo("build", "mine.yaml", status=1))
    quiet = zoo("build", "mine.yaml", "-q", status=1)
    assert quiet.lstrip().startswith("Nothing was exported. 1 failed:")


def test_export_that_differs_names_the_outputs_last(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    equal = OutputComparison("padded prompt", "2 x 9", "logits", 1e-6, 1e-7, 2e-5, None, passed=True)
    differing = replace(equal, output="present", max_abs=0.5, passed=False)
    found = Verification("CPUExecutionProvider", "onnxruntime 1.31.1", "the model itself", (equal, differing))

    def differ(*arguments: Any) -> None:
        raise VerificationError(found)

    monkeypatch.setattr("exporters.export.export", differ)
    check_screen("export-differs", zoo("export", "tiny-gpt", status=1))
    assert zoo("export", "tiny-gpt", "-q", status=1).startswith("The export differs from the PyTorch model")
    assert "differs" in zoo("export", "tiny-gpt", "-v", status=1)


def test_export_without_weights(zoo: Zoo) -> None:
    check_screen("export-graph", zoo("export", "tiny-gpt", "--weights", "none", "--no-verify"))


def test_decoders_that_cannot_generate_are_to_be_verified_where_they_are_deployed(zoo: Zoo) -> None:
    command = ("export", "tiny-gpt", "--set", "head.kind=none", "--name", "body")
    output = zoo(*command)
    assert ["verify", "build/body"] in next_steps(output)
    check_steps(zoo, output)
    unverified = next_steps(zoo(*command, "--no-verify"))
    assert [arguments[0] for arguments in unverified if arguments[0] in QUICK] == []


def test_convert_import_and_adapt(zoo: Zoo) -> None:
    check_screen("convert", zoo("convert", "bert-tiny"))
    imported = zoo("import", "build/bert-tiny-checkpoint", "-o", "mine-again.yaml")
    check_screen("import", imported)
    printed = zoo("import", "build/bert-tiny-checkpoint")
    assert printed.endswith("bert-tiny-checkpoint: BertModel, all 4,385,920 parameters found\n")
    changed = ("--set", "encoder.layers=1", "--set", "vocab_size=30600")
    check_screen("adapt", zoo("adapt", "bert-tiny", *changed, "--weights", "build/bert-tiny-checkpoint"))


@pytest.mark.slow
def test_export_in_int8_for_processors(zoo: Zoo) -> None:
    output = zoo("export", "tiny-gpt", "--target", "cpu", "--precision", "int8")
    check_screen("export-int8", output)
    check_steps(zoo, output)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("build-bert-tiny", ["bert-tiny"]),
        ("build-t5", ["t5-small", "--set", "encoder.layers=1", "--set", "decoder.layers=1"]),
        ("build-large", ["llama-3.2-1b", "--weights", "none", "--target", "cpu"]),
    ],
)
def test_build_of_other_models(zoo: Zoo, name: str, arguments: list[str]) -> None:
    check_screen(name, zoo("build", *arguments))


@pytest.mark.slow
def test_verbose_prints_the_tables_and_ends_like_the_screen(zoo: Zoo) -> None:
    lines = zoo("build", "tiny-gpt", "-v").splitlines()
    assert len(lines) > 80
    assert any(line.startswith("  position") for line in lines)
    assert any(line.startswith("cache, ragged prefill") for line in lines)
    assert not any(line.startswith("  verify") for line in lines)
    check_size("\n".join(lines[-4:]))
    assert lines[-3].startswith("build/tiny-gpt is ready in ")
