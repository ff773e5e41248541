"""Exports whose records are damaged: every command tells it with status 2, or does what it does with the others."""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import done, invoke

Run = Callable[..., Any]

COMMANDS = (
    ("run", "export", "--ids", "1,2", "--max-new-tokens", "2"),
    ("attend", "export", "--ids", "1,2,3"),
    ("diff", "export", "tiny-gpt", "--quiet"),
    ("report", "export", "--html", "page.html", "--device", "h100"),
    ("bench", "export", "--seconds", "0.05"),
)
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1e300, "", "x", "../../etc/passwd", "/etc/passwd", "\x1b[31m", [], [[]], {}, {"a": 1},
)  # fmt: skip
CONTENTS = {
    "nothing": b"", "no text": b"\xff\xfe\x00", "another value": b"[1]", "cut": b'{"format": 2, "zoo": "0',
    "deep": b'{"format":' + b"[" * 1_000_000, "no number": b'{"format": NaN}',
    "the first format": b'{"zoo": "0.1", "target": "cpu", "files": {}, "graphs": {}}',
    "another file": b'{"name": "x"}',
}  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of a tiny model."""
    place = tmp_path_factory.mktemp("original") / "export"
    done("export", "tiny-gpt", "-o", str(place), "--no-verify")
    build = json.loads((place / "build.json").read_text())
    comparison = {
        "case": "one token", "shape": "1 x 1", "output": "logits", "max_abs": 1e-7, "max_rel": 1e-7,
        "tolerance": 2e-5, "top_token": 1.0, "passed": True, "fault": "",
    }  # fmt: skip
    build["verification"] = {
        "passed": True, "subject": "the model itself", "provider": "CPUExecutionProvider",
        "runtime": "onnxruntime", "ran": "the files", "comparisons": [comparison],
    }  # fmt: skip
    (place / "build.json").write_text(json.dumps(build))
    return place


@pytest.fixture
def run(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs ``zoo`` in a directory with a copy of the export; nothing but its own errors may come of it."""
    shutil.copytree(original, tmp_path / "export")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def command(*arguments: str) -> Any:
        result = invoke(*arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            arguments,
            result.exception,
        )
        return result

    return command


def mutations(data: Any, chance: random.Random) -> Iterator[tuple[str, Any]]:
    """The data with one part of it removed, or replaced by something else; every place once, each with one of both."""
    for path in list(places(data)):
        changed = copy.deepcopy(data)
        around = changed
        for part in path[:-1]:
            around = around[part]
        if chance.random() < 0.3:
            del around[path[-1]]
            yield f"without {path}", changed
        else:
            around[path[-1]] = value = chance.choice(VALUES)
            yield f"{path} is {value!r}", changed


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values near the top, and of two of each mapping and list further within."""
    inner = list(
        data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    )
    for key, value in inner if len(path) < 2 else inner[:2]:
        yield (*path, key)
        yield from places(value, (*path, key))


@pytest.mark.parametrize("name", ["export.json", "build.json"])
@pytest.mark.parametrize("damage", CONTENTS)
def test_an_invalid_record_is_reported(damage: str, name: str, run: Run) -> None:
    Path("export", name).write_bytes(CONTENTS[damage])
    result = run("diff", "export", "tiny-gpt", "--quiet")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"export/{name} ")
    assert result.stderr.endswith(
        ("Copy the directory again, or export the model again.\n", "Export the model again.\n")
    )
    if name == "export.json":
        assert run("run", "export", "--ids", "1").stderr == result.stderr


def test_errors_in_a_record_are_located(run: Run) -> None:
    path = Path("export/export.json")
    manifest = json.loads(path.read_text())
    manifest["files"]["model.onnx"]["size"] = "42"
    del manifest["cache"]
    manifest["graphs"] = {"../out.onnx": manifest["graphs"]["model.onnx"]}
    manifest["more"] = 1
    path.write_text(json.dumps(manifest))
    told = run("run", "export", "--ids", "1").stderr
    assert told == (
        "export/export.json: cache: is required\n  Copy the directory again, or export the model again.\n"
        "export/export.json: graphs['../out.onnx']: must be a path inside the directory\n  value: '../out.onnx'\n"
        "export/export.json: files['model.onnx'].size: must be a whole number\n  value: '42'\n"
        "export/export.json: more: extra inputs are not permitted\n  value: 1\n"
    )
    manifest["providers"] = []
    manifest |= dict.fromkeys(map(str, range(20)))
    path.write_text(json.dumps(manifest))
    told = run("run", "export", "--ids", "1").stderr
    assert told.count("\n") < 40
    assert told.endswith("\n... and 15 more problems\n")


@pytest.mark.parametrize(
    ("field", "known"), [("target", "portable"), ("precision", "fp32"), ("layout", "optimum")]
)
def test_unknown_names_in_a_record_are_reported(field: str, known: str, run: Run) -> None:
    path = Path("export/export.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), field: "other"}))
    told = run("attend", "export", "--ids", "1,2")
    assert told.exit_code == 2
    assert told.stderr.startswith(f"export/export.json: {field}: must be one of ")
    assert known in told.stderr
    assert told.stderr.endswith("\n  value: 'other'\n  Export the model again.\n")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_truncated_data_file_is_reported(command: tuple[str, ...], run: Run) -> None:
    with Path("export/model.onnx.data").open("r+b") as file:
        file.truncate(1000)
    result = run(*command)
    told = "model.onnx.data has 1,000 bytes, and export.json records 921,600"
    if command[0] in ("run", "attend", "bench"):
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == (
            f"export has changed since it was exported: {told}\n  Copy the directory again, or export the model again.\n"
        )
    else:
        assert result.exit_code == 1


def test_a_changed_graph_is_reported(run: Run) -> None:
    path = Path("export/model.onnx")
    path.write_bytes(b"\xff" * path.stat().st_size)
    for arguments in (("run", "export", "--ids", "1"), ("attend", "export", "--ids", "1,2")):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["export.json", "build.json"])
def test_no_damage_ends_in_a_traceback(name: str, seed: int, run: Run) -> None:
    chance, path = random.Random(seed), Path("export", name)
    for _, changed in mutations(json.loads(path.read_text()), chance):
        path.write_text(json.dumps(changed))
        for command in COMMANDS[2:4] if name == "build.json" else COMMANDS[:4]:
            result = run(*command)
            assert result.exit_code in (0, 1, 2)
            if result.exit_code == 2:
                assert result.stderr
                assert len(result.stderr) < 5000
