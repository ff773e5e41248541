"""What `zoo make` believes: the zoo file and its lock, before the cache, and before files that are there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporters.making.artefacts import Zoo, read_zoo
from exporters.making.cache import Cache
from exporters.making.lock import Lock
from exporters.making.make import make as make_artefacts
from exporters.making.plan import make_plan
from specs.base.errors import CombinedError, SpecError, UserError
from tests.cli.program import invoke
from tests.exporters.making.zoos import (
    LIMIT,
    LOCK,
    Here,
    cache_of,
    make,
    plan_of,
    two_models,
    write_spec,
    write_zoo,
)
from zoo.files.workplace import new_directory

NAME = "b/portable-fp32"


@pytest.fixture(autouse=True)
def never_waits() -> Iterator[None]:
    """A test that waits for a pipe fails."""
    signal.alarm(120)
    yield
    signal.alarm(0)


@pytest.fixture
def zoo(tmp_path: Path) -> Zoo:
    """A zoo of which one artefact is built."""
    found = two_models(tmp_path)
    make(found, "b")
    return found


def output(zoo: Zoo) -> Path:
    return zoo.root / "build" / NAME


def entry(zoo: Zoo) -> Path:
    key = Lock.read(zoo.lock).artefacts[NAME]["key"]
    return cache_of(zoo).entry(key)


def forge(directory: Path) -> None:
    """Change an export, and its records consistently."""
    spec = directory / "spec.yaml"
    changed = spec.read_bytes() + b"# forged\n"
    manifest = json.loads((directory / "export.json").read_bytes())
    manifest["files"]["spec.yaml"] = {"size": len(changed), "sha256": hashlib.sha256(changed).hexdigest()}
    build = json.loads((directory / "build.json").read_bytes())
    text = json.dumps(manifest).encode()
    build["export"] = hashlib.sha256(text).hexdigest()
    for name, content in (
        ("spec.yaml", changed),
        ("export.json", text),
        ("build.json", json.dumps(build).encode()),
    ):
        (directory / name).unlink()  # the output may be the same file
        (directory / name).write_bytes(content)


def test_a_consistently_changed_entry_of_the_cache_is_built_again(zoo: Zoo) -> None:
    lock = zoo.lock.read_bytes()
    forge(entry(zoo))
    shutil.rmtree(output(zoo))
    executor = Here()
    assert [each.state for each in make(zoo, "b", executor=executor)] == ["built"]
    assert executor.ran == [NAME]
    assert "forged" not in (output(zoo) / "spec.yaml").read_text()
    assert zoo.lock.read_bytes() == lock


def test_a_consistently_changed_output_is_stale(zoo: Zoo) -> None:
    lock = zoo.lock.read_bytes()
    forge(output(zoo))
    (step,) = plan_of(zoo, "b").unlocked
    assert (step.state, step.why) == ("cached", "export.json is not the one that the lock file records")
    make(zoo, "b")
    assert "forged" not in (output(zoo) / "spec.yaml").read_text()
    assert zoo.lock.read_bytes() == lock


@pytest.mark.parametrize("name", ["model.onnx", "model.onnx.data", "spec.yaml"])
def test_an_output_edited_in_place_at_equal_size_is_stale(zoo: Zoo, name: str) -> None:
    assert not plan_of(zoo, "b").stale
    path = output(zoo) / name
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.write(bytes(byte ^ 1 for byte in content[:20]))
    (step,) = plan_of(zoo, "b").stale
    assert step.why == f"{name} has other contents than were recorded"
    make(zoo, "b")
    assert path.read_bytes() == content


def test_links_pipes_and_unlisted_files_of_an_entry_reach_no_output(zoo: Zoo) -> None:
    (zoo.root / "secret").write_text("a secret")
    (entry(zoo) / "tokenizer.json").write_text("{}")
    (entry(zoo) / "evil.json").symlink_to(zoo.root / "secret")
    os.mkfifo(entry(zoo) / "pipe")
    shutil.rmtree(output(zoo))
    assert [each.state for each in make(zoo, "b")] == ["restored"]
    assert not {"tokenizer.json", "evil.json", "pipe"} & {path.name for path in output(zoo).iterdir()}
    for attack in (lambda path: path.symlink_to(zoo.root / "secret"), os.mkfifo):
        (entry(zoo) / "spec.yaml").unlink()
        attack(entry(zoo) / "spec.yaml")
        shutil.rmtree(output(zoo))
        assert [each.state for each in make(zoo, "b")] == ["built"]
        assert (output(zoo) / "spec.yaml").read_text().startswith("name: b")


def test_an_entry_that_is_a_link_elsewhere_is_not_followed(zoo: Zoo, tmp_path: Path) -> None:
    shutil.copytree(entry(zoo), tmp_path / "elsewhere")
    shutil.rmtree(entry(zoo))
    forge(tmp_path / "elsewhere")
    entry(zoo).symlink_to(tmp_path / "elsewhere")
    shutil.rmtree(output(zoo))
    make(zoo, "b")
    assert "forged" not in (output(zoo) / "spec.yaml").read_text()
    assert (tmp_path / "elsewhere" / "export.json").is_file()


def test_a_cache_that_cannot_be_written(zoo: Zoo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/zoo")):
        monkeypatch.setenv("ZOO_CACHE_DIR", str(place))
        monkeypatch.chdir(tmp_path)
        assert invoke("make", "--plan").exit_code == 0
        result = invoke("make", "a")
        assert result.exit_code == 2, result.output
        assert result.stderr.startswith(f"The cache {place} cannot be written: ")
        assert "Set ZOO_CACHE_DIR to a directory that can be written." in result.stderr
        assert not (tmp_path / "build" / "a").exists()
        assert invoke("cache").exit_code == 0


def test_each_zoo_file_of_a_directory_has_its_own_lock_and_output(zoo: Zoo, tmp_path: Path) -> None:
    lock, built = zoo.lock.read_bytes(), (output(zoo) / "export.json").read_bytes()
    assert zoo.lock == tmp_path / LOCK
    (tmp_path / "other.yaml").write_text(
        "defaults: {options: {verify: false}}\nmodels:\n  b: {spec: b.yaml, seed: 5}\n"
    )
    other = read_zoo(tmp_path / "other.yaml")
    plan = make_plan(other, (), cache_of(zoo))
    assert [each.state for each in make_artefacts(plan, cache_of(zoo), Here(), lambda *_: None, LIMIT)] == [
        "built"
    ]
    assert zoo.lock.read_bytes() == lock
    assert (output(zoo) / "export.json").read_bytes() == built
    assert set(Lock.read(tmp_path / "other.lock").artefacts) == {NAME}
    assert (tmp_path / "build" / "other" / NAME / "export.json").is_file()
    assert not plan_of(zoo, "b").stale


@pytest.mark.parametrize("linked", ["build", "build/b", "build/b/portable-fp32"])
def test_an_output_that_a_link_leads_elsewhere(tmp_path: Path, linked: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project").mkdir()
    two_models(tmp_path / "project")
    (tmp_path / "project" / linked).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "project" / linked).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SpecError) as refused:
        read_zoo(tmp_path / "project" / "zoo.yaml")
    assert "output: must stay below the zoo file's directory, but a link leads " in str(refused.value)
    assert "Replace the link by a directory" in str(refused.value)
    assert not any((tmp_path / "elsewhere").iterdir())


def test_all_faults_are_told_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_models(tmp_path)
    write_zoo(
        tmp_path,
        "defaults: {options: {verify: false}}\nmodels:\n"
        "  a: {spec: a.yaml, artefacts: [{asymmetric: true}, {target: cpuu}]}\n"
        "  bert-bass: {}\n"
        "  missing: {weights: nowhere.safetensors}\n"
        "  b: {spec: b.yaml}\n",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZOO_CACHE_DIR", str(tmp_path / "cache"))
    for options in (["--plan"], ["--check"], []):
        result = invoke("make", *options)
        assert result.exit_code == 2, result.output
        for fault in (
            "zoo.yaml: a/portable-fp32-asymmetric: asymmetric applies only to precision int4 or q4f16",
            "zoo.yaml: a/cpuu-fp32: target 'cpuu' is unknown",
            "zoo.yaml: models.bert-bass: ",
            "zoo.yaml: models.missing: weights: must be an existing path",
        ):
            assert fault in result.stderr
        assert not (tmp_path / "build").exists()
        assert not (tmp_path / LOCK).exists()
    data = json.loads(invoke("make", "--json").stdout)
    assert len(data["errors"]) == 4
    assert all(each["message"] for each in data["errors"])
    assert invoke("make", "b").exit_code == 0  # a fault of others does not concern it


@pytest.mark.parametrize("attack", ["pipe", "device", "directory"])
def test_a_lock_that_is_no_file(zoo: Zoo, attack: str) -> None:
    zoo.lock.unlink()
    make_irregular(zoo.lock, attack)
    with pytest.raises(UserError, match=r"zoo\.lock cannot be read: it is a"):
        plan_of(zoo)


@pytest.mark.parametrize("attack", ["pipe", "device"])
@pytest.mark.parametrize("field", ["weights", "calibrate"])
def test_weights_and_calibration_inputs_that_are_no_files(tmp_path: Path, field: str, attack: str) -> None:
    write_spec(tmp_path, "b")
    make_irregular(tmp_path / "given", attack)
    options = "weights: given" if field == "weights" else "options: {calibrate: given}"
    zoo = write_zoo(tmp_path, f"models:\n  b: {{spec: b.yaml, {options}}}\n")
    with pytest.raises(CombinedError, match=r"given cannot be read: it is a"):
        plan_of(zoo)


def make_irregular(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"format": 1, "repositories": {}, "weights": {}, "artefacts": {"b/portable-fp32": 3}}',
        '{"format": 1, "repositories": {"a": {}}, "weights": {}, "artefacts": {}}',
        '{"format": 1, "repositories": [], "weights": {}, "artefacts": {}}',
        '{"format": 1e999}',
        '{"format": ' + "9" * 5000 + "}",
        "\\ud800",
        "",
    ],
)
def test_damaged_locks(zoo: Zoo, text: str) -> None:
    zoo.lock.write_text(text)
    with pytest.raises(UserError) as refused:
        plan_of(zoo)
    assert str(refused.value).startswith(str(zoo.lock))
    assert str(refused.value).endswith("Restore it from version control, or remove it and run zoo make.")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"made_from": 3}', '{"made_from": {"key": {}}}', '{"made_from": {"options": 5}}']
)
def test_damaged_records_of_an_output_make_it_stale(zoo: Zoo, text: str) -> None:
    (output(zoo) / "build.json").unlink()
    (output(zoo) / "build.json").write_text(text)
    assert plan_of(zoo, "b").stale


def test_sizes_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("9" * 400 + "GB", "1e999GB", "-1GB", "nan"):
        monkeypatch.setenv("ZOO_CACHE_LIMIT", limit)
        monkeypatch.setenv("ZOO_CACHE_DIR", str(tmp_path / "cache"))
        result = invoke("cache")
        assert result.exit_code == 2, result.output
        assert "must be a size" in result.stderr


def test_what_killed_processes_left_in_the_cache_is_cleared(zoo: Zoo) -> None:
    cache = cache_of(zoo)
    left = entry(zoo).parent / f".{'0' * 64}.partial-00000000"
    left.mkdir()
    (new_directory(left) / "model.onnx").write_bytes(b"half")
    partial = zoo.root / f".{LOCK}.{'0' * 16}"
    partial.write_bytes(b"half")
    os.utime(partial, (0, 0))
    cache.prune(LIMIT)
    Lock().write(zoo.lock)
    assert not left.exists()
    assert not partial.exists()
    assert Cache(cache.root).entries()


def test_matrices_are_bounded_before_their_combinations_are_tried(tmp_path: Path) -> None:
    values = "[" + ", ".join(["1"] * 99) + "]"
    options = ("opset", "cache_length", "max_kl", "min_cosine")
    matrix = ", ".join(f"{option}: {values}" for option in options)
    write_spec(tmp_path, "b")
    with pytest.raises(SpecError, match=r"models\.b\.matrix: must have at most 100,000 combinations"):
        write_zoo(tmp_path, f"models:\n  b: {{spec: b.yaml, matrix: {{{matrix}}}}}\n")


@pytest.mark.parametrize("field", ["weights", "calibrate", "spec"])
def test_names_that_no_file_has(tmp_path: Path, field: str) -> None:
    write_spec(tmp_path, "b")
    given = '"a\\0b.yaml"'
    options = {
        "weights": f"spec: b.yaml, weights: {given}",
        "calibrate": f"spec: b.yaml, options: {{calibrate: {given}}}",
        "spec": f"spec: {given}",
    }
    zoo = write_zoo(tmp_path, f"models:\n  b: {{{options[field]}}}\n")
    with pytest.raises(CombinedError, match=r"zoo\.yaml: "):
        plan_of(zoo)


def test_the_lock_never_records_what_a_failed_build_left(zoo: Zoo) -> None:
    lock = zoo.lock.read_bytes()
    forge(output(zoo))
    shutil.rmtree(entry(zoo))
    entry(zoo).mkdir()
    (entry(zoo) / "not ours").write_text("mine")
    assert [each.state for each in make(zoo, "b")] == ["failed"]
    assert zoo.lock.read_bytes() == lock
    (output(zoo) / "export.json").write_text("[")
    assert [each.state for each in make(zoo, "b")] == ["failed"]
    assert zoo.lock.read_bytes() == lock
