"""Whatever is wrong is told with place, rule, value and remedy, with status 2, and never by a traceback."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from specs.language.load import load
from tests.cli.process import environment, zoo
from tests.cli.program import invoke
from tests.thinned import one_in
from zoo.builder import assemble
from zoo.weights.random import RandomWeights

pytestmark = pytest.mark.usefixtures("empty_directory")


def refused(*arguments: str) -> str:
    """What is told of a mistake, on stderr, and as data under ``--json``."""
    result, data = invoke(*arguments), invoke(*arguments, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert (data.exit_code, data.stderr) == (2, "")
    errors = json.loads(data.stdout)["errors"]
    messages: str = "\n".join(error["message"] for error in errors) + "\n"
    if "Usage:" not in result.stderr:
        assert messages == result.stderr
    assert "Traceback" not in messages
    return messages


# ------------------------------------------------------------------------------------------------------ specs

BOMB = (
    "a: &a ["
    + "x, " * 20
    + "]\n"
    + "".join(f"{n}: &{n} [{f'*{m}, ' * 20}]\n" for m, n in zip("abcd", "bcde", strict=True))
)

SPECS = [
    ("name: [a", "spec.yaml:2:1: a list in brackets must have commas"),
    ("", "spec.yaml: a spec must not be empty\n  Start with a key and its value"),
    ("# nothing\n", "spec.yaml: a spec must not be empty"),
    ("- a\n- b\n", "spec.yaml:1:1: a spec must be a mapping, but this is a list\n  value: ['a', 'b']\n"),
    ("hello\n", "spec.yaml:1:1: a spec must be a mapping, but this is a string\n  value: 'hello'\n"),
    ("name: a\nname: b\n", "spec.yaml:2:1: name: a mapping must have each key once, but this one is on lines 1 and 2"),
    (BOMB, "a spec must have at most 20000 values, counting each use of an alias in full\n  Use named `blocks`"),
    ("a: &a [*a]\n", "a value must not contain itself, but *a is within &a\n  Write the value out"),
    ("[" * 100, "lists and mappings must be nested at most 64 deep\n  Close the brackets"),
    ("extends: spec.yaml\n", "extends: must not form a cycle: spec.yaml -> spec.yaml\n  value: 'spec.yaml'\n  Extend"),
    ("extends: [gpt2]\n", "spec.yaml:1:10: extends: must be a preset name or the path of a file\n  value: ['gpt2']"),
    ("extends: gptt2\n", "spec.yaml:1:10: extends: must be a preset or a file\n  value: 'gptt2'\n  Did you mean 'gpt2'?"),
    ("extends: .\n", "spec.yaml:1:10: extends: must be a preset or a file\n  value: '.'"),
    ("extends: ../gone.yaml\n", "  value: '../gone.yaml'\n  Paths are relative to this file"),
    ("extends: gpt2\nname: a/b\n", "spec.yaml:2:7: name: must match ^[A-Za-z0-9]"),
    ("extends: gpt2\nname: ../../a\n", "  value: '../../a'\n  Use letters, digits and . _ - + = , @ only."),
    ("extends: gpt2\nname: ..\n", "  value: '..'\n"),
    ("extends: gpt2\nname: модель\n", "  value: 'модель'\n"),
    ("extends: gpt2\ndecoder: {layers: 1000000000}\n",
     "spec.yaml:2:19: decoder.layers: must be less than or equal to 10000\n  value: 1000000000\n  Use 10000 or less.\n"),
    ("extends: gpt2\ndecoder: {layers: [{repeat: 10000, pattern: [{repeat: 10000}]}]}\n",
     "decoder.layers: must have at most 10000 layers in total\n  value: 100000000\n  Reduce repeat.\n"),
    ("extends: gpt2\nvocab_size: 1000000000000\n", "spec.yaml:2:13: vocab_size: must be less than or equal to 16777216\n"),
    ("extends: gpt2\nd_model: 1099511627776\n", "spec.yaml:2:10: d_model: must be less than or equal to 16777216\n"),
    ("extends: gpt2\nvocab_size: 0\n", "vocab_size: must be greater than 0\n  value: 0\n  Use 1 or more.\n"),
    ("extends: gpt2\nd_model: -768\n", "d_model: must be greater than 0\n  value: -768\n  Use 1 or more.\n"),
    ("extends: gpt2\nvocab_size: '12'\n", "must be a whole number\n  value: '12'\n  Write it without quotes: 12.\n"),
    ("extends: gpt2\nd_model: 767.6\n", "d_model: must be a whole number\n  value: 767.6\n  Use 768.\n"),
    ("extends: gpt2\ndecoder: 5\n", "decoder: must be a mapping\n  value: 5\n  Write its keys below it, indented.\n"),
    ("extends: gpt2\nhead: 7\n", "spec.yaml:2:7: head: must be a mapping with a `kind` of head\n  value: 7\n"),
    ("extends: gpt2\nhead: {kind: poolr}\n", "head.kind: must be a registered head kind\n  value: 'poolr'\n  Did you mean 'pooler'?"),
    ("extends: gpt2\nd_modle: 3\n", "spec.yaml:2:1: d_modle: is not a known key\n  Did you mean 'd_model'?"),
    ("extends: gpt2\ndecoder: {block: {attention: {heads: 7}}}\n",
     "decoder.block.attention.heads: must divide d_model, which is 768\n  value: 7\n  Use a divisor: 1, 2"),
    ("extends: gpt2\nposition: {kind: rope, dimensions: 7}\n",
     "position.dimensions: must be even: dimensions rotate in pairs\n  value: 7\n  Use 6 or 8.\n"),
    ("extends: gpt2\ndecoder: {block: {norm: {kind: layer_norm, eps: .nan}}}\n",
     "decoder.block.norm.eps: must be a finite number\n  value: nan\n  Use a finite number, such as 1.0e-5.\n"),
    ("extends: gpt2\nposition: {kind: rope, theta: .inf}\n", "position.theta: must be a finite number\n  value: inf\n"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), SPECS)
def test_a_wrong_spec(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
    assert message in refused("show", "spec.yaml")


def test_a_circle_through_other_directories(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "spec.yaml").write_text(f"extends: ../{other}/spec.yaml\n")
    assert "must not form a cycle: spec.yaml -> spec.yaml -> spec.yaml" in refused("show", "a/spec.yaml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x04\x95", "spec.yaml:1:1: a spec must be UTF-8 text, but it contains the byte 0x80\n  Save the file as UTF-8.\n"),
        (b"a: \xff\xfe", "spec.yaml:1:4: a spec must be UTF-8 text, but it contains the byte 0xff\n"),
        (b"a: \x00", "a spec must not contain the control character U+0000\n  Remove the character"),
        (b"x" * 1_000_001, "spec.yaml: a spec must be at most 1,000,000 bytes\n  Keep weights and data in other files.\n"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "spec.yaml").write_bytes(content)
    assert message in refused("show", "spec.yaml")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gone.yaml", "gone.yaml: the file must exist\n  Check the path.\n"),
        (
            ".",
            ". is neither an export nor a checkpoint: it has no export.json, no config.json and no spec.yaml.\n  Name a directory that zoo build",
        ),
        (
            "bert_bse",
            "A model must be a preset, a file, a checkpoint or a hub repository\n  value: 'bert_bse'\n  Did you mean 'bert-base'?\n",
        ),
        ("x" * 5000, "A model must be a preset, a file, a checkpoint or a hub repository\n  value: 'xxx"),
        ("x" * 5000 + ".yaml", "the file must be readable: File name too long\n  Check the path.\n"),
        ("", "A model must be a preset, a file, a checkpoint or a hub repository\n  value: ''\n"),
    ],
)
def test_a_spec_that_is_not_there(spec: str, message: str) -> None:
    assert message in refused("show", spec)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("d_model", "an assignment must have an '=' between path and value\n  Write it as in decoder.block"),
        ("", "an assignment must have an '=' between path and value"),
        ("=3", "a path must be names joined by dots, with indices in brackets"),
        ("a..b=3", "a path must be names joined by dots, with indices in brackets"),
        ("decoder.layers[0=3", "a path must be names joined by dots, with indices in brackets"),
        ("d_model=", "an assignment must have a value after its '='\n  Write null for no value, or '' for an empty string.\n"),
        ("d_model=[1", "a list in brackets must have commas between its items and a ']' at its end\n  Close it.\n"),
        ("d_model={", "a value is missing"),
        ("d_model=1,2", "an assignment must have one value\n  Put a list in brackets, or a string with commas in quotes.\n"),
        ("d_model=*a", "an alias must name an anchor above it, but &a is not defined"),
        ("d_model=!!python/object/apply:os.system [ls]", "a tag must be !!str, !!int, !!float, !!bool or !!null"),
        ("decoder.layers[9].repeat=3", "an index must select an element of a list, and decoder.layers is an integer"),
        ("d_model=1e400", "d_model: must be a whole number\n  value: inf\n"),
        ("d_model=NaN", "d_model: must be a whole number\n  value: 'NaN'\n"),
        ("position.kind=rop", "position.kind: must be a registered position kind\n  value: 'rop'\n  Did you mean 'rope'?\n"),
        ("extends=bert-base", "extends: is not a known key\n"),
        ("nope.a=1", "nope: is not a known key\n"),
    ],
)  # fmt: skip
def test_a_wrong_assignment(assignment: str, message: str) -> None:
    told = refused("show", "tiny-gpt", "--set", assignment)
    assert told.startswith(f"--set {assignment}: ")
    assert message in told


# ---------------------------------------------------------------------------------------------------- weights


@pytest.fixture(scope="module")
def tensors() -> dict[str, torch.Tensor]:
    spec = load("tiny-gpt")
    model = assemble(spec)
    source = RandomWeights(model, spec)
    return {n: torch.cat(list(source.pieces(n))).view(p.shape) for n, p in model.named_parameters()}


KEY = "decoder.blocks.0.attention.key.weight"


def _saved_below(path: Path) -> None:
    path.mkdir()
    torch.save([1], path / "pytorch_model.bin")


def _changed(tensors: dict[str, torch.Tensor], value: float) -> dict[str, torch.Tensor]:
    changed = tensors[KEY].clone()
    changed[3, 4] = value
    return {**tensors, KEY: changed}


def _cut(tensors: dict[str, torch.Tensor], path: Path, size: int) -> None:
    save_file(tensors, path)
    os.truncate(path, size)


def _sharded(tensors: dict[str, torch.Tensor], path: Path) -> None:
    path.mkdir()
    save_file({KEY: tensors[KEY]}, path / "a.safetensors")
    shards = {name: "a.safetensors" if name == KEY else "b.safetensors" for name in tensors}
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))


WEIGHTS: list[tuple[Callable[[dict[str, torch.Tensor], Path], Any], str]] = [
    (lambda t, p: None, "'weights' has no weights\n  Pass random, none, a file (.safetensors, .bin, .gguf), a directory with one, or a repository on the Hugging Face hub (org/name)."),
    (lambda t, p: p.touch(), "weights is empty, perhaps because its download was truncated"),
    (lambda t, p: _cut(t, p, 5), "weights is truncated or not a safetensors file: it has 5 bytes"),
    (lambda t, p: _cut(t, p, 500_000), "weights is truncated: its header declares 899,784 bytes, and it has 500,000"),
    (lambda t, p: save_file({**t, KEY: torch.zeros(3, 5)}, p), f"of another shape: {KEY} is 3 x 5, and {KEY} needs 64 x 64"),
    (lambda t, p: save_file({**t, KEY: t[KEY].int()}, p), f"{KEY} has dtype I32; weights must be F64, F32, F16 or BF16"),
    (lambda t, p: save_file({n: v for n, v in t.items() if n != KEY}, p), f"1 missing\n  missing: {KEY}\n"),
    (lambda t, p: save_file({**t, "extra": t[KEY].clone()}, p), "1 unused\n  unused: extra\n"),
    (lambda t, p: save_file(_changed(t, torch.nan), p), f"weights: {KEY} has NaN or infinite values (1 of 4,096 checked)"),
    (lambda t, p: save_file(_changed(t, torch.inf), p), f"weights: {KEY} has NaN or infinite values (1 of 4,096 checked)"),
    (lambda t, p: torch.save({**t, KEY: Namespace()}, p), "weights holds argparse.Namespace, which is code, not data; it was not run"),
    (lambda t, p: _saved_below(p), "pytorch_model.bin holds a list, not tensors by name"),
    (lambda t, p: p.write_text("version https://git-lfs.github.com/spec/v1\n"), "weights is a git-lfs pointer, not the file itself"),
    (lambda t, p: p.mkdir(), "weights has no model.safetensors, no pytorch_model.bin and no index of shards\n  value: no files"),
    (_sharded, "lists 2 files, 1 of them missing: b.safetensors"),
    (lambda t, p: p.symlink_to("/dev/null"), "weights cannot be read: it is a device, and only regular files are read"),
]  # fmt: skip


@one_in(4)
@pytest.mark.parametrize(("make", "message"), WEIGHTS)
def test_wrong_weights(
    tmp_path: Path, tensors: dict[str, torch.Tensor], make: Callable[..., Any], message: str
) -> None:
    make(tensors, tmp_path / "weights")
    assert message in refused("export", "tiny-gpt", "--weights", "weights", "-o", "out")
    assert {path.name for path in tmp_path.iterdir()} <= {"weights"}


# ---------------------------------------------------------------------------------------------------- options


@one_in(4)
@pytest.mark.parametrize("command", ["build", "export"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "portabel"], "--target 'portabel' is unknown\n  Did you mean 'portable'?\n"),
        (["--layout", "optimun"], "--layout 'optimun' is unknown\n  Did you mean 'optimum'?\n"),
        (["--layout", "optimum"], "--layout optimum: optimum-onnx cannot load tiny-gpt: "),
        (["--via", "nonsense"], "--via 'nonsense' is unknown\n  Choose from: fx, torch.\n"),
        (["--via", "torch", "--weights", "none"], "--via torch needs weights\n  Pass --weights random or a path.\n"),
        (["--seed", "abc"], "Invalid value for '--seed'"),
        (["-o", "file"], "file is a file, not a directory.\n  Choose another directory.\n"),
        (["-o", "file/below"], "file is a file, not a directory.\n  Choose another directory.\n"),
        (["-o", "foreign"], "foreign holds files and no valid export.json, so zoo did not write it.\n  Choose another directory, or remove this one.\n"),
        (["-o", ""], ". is the working directory, which zoo does not replace.\n  Choose a directory in it, such as out.\n"),
        (["-o", ".."], ".. contains the working directory, and zoo does not replace it.\n  Choose a directory in it, such as ../out.\n"),
        (["-o", "x" * 300], " cannot be written: File name too long.\n  Choose another directory.\n"),
        (["-o", "/proc/x"], "/proc/x cannot be written: No such file or directory.\n  Choose another directory.\n"),
    ],
)  # fmt: skip
def test_wrong_options(tmp_path: Path, command: str, options: list[str], message: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes").touch()
    assert message in refused(command, "tiny-gpt", *options)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "foreign"}


@pytest.mark.parametrize("arguments", [["frobnicate"], ["show"], ["show", "a", "b"], ["params", "gpt2", "--depth", "-1"],
                                       ["list", "--architecture", "encodr"], ["list", "gptt"], ["show", "gpt2", "--sett", "a=1"]])  # fmt: skip
def test_a_wrong_command_line(arguments: list[str]) -> None:
    refused(*arguments)


# -------------------------------------------------------------------------------------------------- too large


@one_in(2)
@pytest.mark.parametrize("command", ["build", "export"])
def test_an_export_larger_than_the_disk_is_refused_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=68_000_000_000)  # others write to it meanwhile
    monkeypatch.setattr("zoo.files.destination.shutil.disk_usage", lambda path: usage)
    told = refused(command, "gpt3-175b")
    assert "build/gpt3-175b needs 698.4 GB, and its disk has 68.0 GB free" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "needs"), [(["--weights", "none"], "Verification, on a reduced model of "), (["--via", "torch"], "--via torch needs ")]
)  # fmt: skip
def test_too_little_memory_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], needs: str
) -> None:
    monkeypatch.setattr("exporters.verification.verified_model.available_memory", lambda: 300_010_000)
    told = refused("export", "gpt2", *options)
    assert told.startswith(needs)
    assert "of memory, and 10.0 kB are free\n  Use a larger machine, or export with --" in told


@pytest.mark.slow
def test_a_memory_limit_is_reported(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (6_000_000_000, 6_000_000_000))

    result = zoo("export", "gpt2-xl", "--via", "torch", cwd=tmp_path, env=environment(), preexec_fn=limit)
    assert result.returncode == 2
    assert "--via torch needs 24.9 GB of memory, and " in result.stderr


# ------------------------------------------------------------------------------------------------------- full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 600 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(place)]
    if os.getuid() or not shutil.which("mount") or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("cannot mount")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_too_small_is_reported_before_writing(small_disk: Path) -> None:
    told = refused("export", "tiny-gpt", "--no-verify", "-o", str(small_disk / "out"))
    assert f"{small_disk}/out needs 894.5 kB, and its disk has 614.4 kB free.\n" in told
    assert not list(small_disk.iterdir())


@pytest.mark.parametrize(
    ("via", "reason"),
    [
        ("fx", "its disk is full.\n  Free some space, or choose a directory on another disk.\n"),
        pytest.param("torch", "problem writing element", marks=pytest.mark.slow),
    ],
)
def test_a_disk_that_fills_up(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, via: str, reason: str
) -> None:
    monkeypatch.setattr("exporters.export.check_destination", lambda *_: None)
    monkeypatch.setattr("exporters.steps.request.check_destination", lambda *_: None)
    told = refused("export", "tiny-gpt", "--no-verify", "--via", via, "-o", str(small_disk / "out"))
    assert told.startswith(f"{small_disk}/out cannot be written: {reason}")
    assert not list(small_disk.iterdir())


@pytest.mark.slow
def test_files_too_large_for_the_file_system(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    result = zoo(
        "export", "tiny-gpt", "--no-verify", "-o", "out", cwd=tmp_path, env=environment(), preexec_fn=limit
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "out cannot be written: File too large.\n  Choose another directory.\n"
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------------------------------- streams


def shell(command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    program = f'zoo() {{ "{sys.executable}" -c "from cli.main import main; main()" "$@"; }}'
    return subprocess.run(
        ["bash", "-c", f"{program}\n{command}"], cwd=cwd, env=environment(**variables), capture_output=True,
        text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("zoo params tiny-gpt | head -1 >/dev/null", 0),
        ("zoo list >&-", 0),
        ("zoo show gpt2 --json <&- >&- 2>&-", 0),
        ("zoo show gptt2 >&- 2>&-", 2),
        ("zoo show gptt2 2>/dev/full", 2),
        ("zoo show gptt2 --json >/dev/full", 2),
        ("unset HOME; zoo list gpt2 >/dev/null", 0),
    ],
)
def test_streams_that_are_closed_or_full(tmp_path: Path, command: str, status: int) -> None:
    result = shell(command, tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (status, "", "")


@pytest.mark.parametrize(("options", "status"), [("", 2), (" --json", 2)])
def test_a_full_output_is_reported(tmp_path: Path, options: str, status: int) -> None:
    result = shell(f"zoo list{options} >/dev/full", tmp_path)
    assert (result.returncode, result.stderr) == (status, f"Cannot write: {os.strerror(errno.ENOSPC)}\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"TERM": "dumb"},
        {"NO_COLOR": "1"},
        {"COLUMNS": "20"},
        {"COLUMNS": "wide"},
    ],
)
def test_poor_terminals(tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / "größe.yaml").write_text("extends: tiny-gpt\nname: tiny\nsummary: Größe\n", encoding="utf-8")
    result = shell(
        "zoo list 'gpt2' && zoo validate größe.yaml && zoo show größe.yaml && zoo show grösse.yaml",
        tmp_path,
        **variables,
    )
    assert result.returncode == 2
    assert "124M" in result.stdout
    assert "the file must exist" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_directory_that_cannot_be_written_as_the_default_place(tmp_path: Path) -> None:
    result = zoo("export", "tiny-gpt", cwd="/proc", env=environment())
    assert (result.returncode, result.stdout) == (2, "")
    assert (
        result.stderr
        == "build/tiny-gpt cannot be written: No such file or directory.\n  Choose another directory.\n"
    )
