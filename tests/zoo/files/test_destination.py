"""An output directory appears whole or not at all, and what stood there before is safe."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from exporters.data import data_file
from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.verification import compare as verify
from tests.exporters.models import GRAPH_ONLY, UNVERIFIED, contents
from tests.thinned import one_in
from tests.zoo.tiny import bert, gpt2
from zoo.core.progress import Stage
from zoo.files.destination import (
    DestinationError,
    check_destination,
    check_replaceable,
    replacing,
)

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(params=["absent", "empty", "export"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A destination with what may stand there."""
    where = tmp_path / "out"
    if request.param == "empty":
        where.mkdir()
    if request.param == "export":
        export(gpt2(), where, GRAPH_ONLY)
        (where / "eval").mkdir()
        (where / "eval" / "scores").write_text("mine")
    return where


def state(place: Path) -> tuple[bool, dict[str, bytes]]:
    return place.exists(), contents(place.parent)


Harm = Callable[[pytest.MonkeyPatch], Any]


def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(data_file, "_write_all", raising)


def interrupted_while_verifying(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(verify, "_comparisons", raising)


def full(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*args: Any) -> None:
        raise FULL

    monkeypatch.setattr(data_file, "_write_all", raising)


def full_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.write_bytes

    def raising(path: Path, *args: Any, **kwargs: Any) -> int:
        if path.name == "export.json":
            raise FULL
        return original(path, *args, **kwargs)

    monkeypatch.setattr(Path, "write_bytes", raising)


def no_rename(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.rename

    def raising(path: Path, target: Path) -> Path:
        if path.name.startswith("new-") and target.name == "out":
            raise OSError(errno.EACCES, "Permission denied")
        return original(path, target)

    monkeypatch.setattr(Path, "rename", raising)


def interrupted_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.rename

    def raising(path: Path, target: Path) -> Path:
        if path.name.startswith("new-") and target.name == "out":
            raise KeyboardInterrupt
        return original(path, target)

    monkeypatch.setattr(Path, "rename", raising)


def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", raising)


HARMS: list[tuple[Harm, Any]] = [
    (interrupted, KeyboardInterrupt),
    (interrupted_while_verifying, KeyboardInterrupt),
    (full, DestinationError),
    (full_at_the_end, DestinationError),
    (no_rename, DestinationError),
    (interrupted_at_the_end, KeyboardInterrupt),
    (no_sync, DestinationError),
]


@one_in(12)
@pytest.mark.parametrize(("harm", "error"), HARMS, ids=[harm.__name__ for harm, _ in HARMS])
def test_whatever_happens_the_place_is_as_it_was(
    harm: Harm, error: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(place)
    with monkeypatch.context() as patch:
        harm(patch)
        with pytest.raises(error):
            export(bert(), place)
    assert state(place) == before
    assert {path.name for path in place.parent.iterdir()} <= {"out"}


def test_a_success_replaces_all_of_an_earlier_export_and_nothing_else(place: Path) -> None:
    theirs = {path: content for path, content in contents(place).items() if path.startswith("eval/")}
    export(bert(), place, UNVERIFIED)
    fresh = place.parent / "fresh"
    export(bert(), fresh, UNVERIFIED)
    assert contents(place) == {**contents(fresh), **theirs}
    assert {path.name for path in place.parent.iterdir()} == {"out", "fresh"}


def test_a_full_disk_is_reported(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full(monkeypatch)
    with pytest.raises(DestinationError) as error:
        export(gpt2(), place, UNVERIFIED)
    assert str(error.value) == (
        f"{place} cannot be written: its disk is full.\n  Free some space, or choose a directory on another disk."
    )


def test_a_system_error_is_reported_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(DestinationError) as error, replacing(tmp_path / "out"):
        raise OSError(errno.EFBIG, "File too large")
    assert (
        str(error.value)
        == f"{tmp_path / 'out'} cannot be written: File too large.\n  Choose another directory."
    )


def test_errors_of_others_pass(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "out"):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_a_file_at_the_destination_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(DestinationError) as error:
        export(gpt2(), tmp_path / "out", UNVERIFIED)
    assert str(error.value) == f"{tmp_path / 'out'} is a file, not a directory.\n  Choose another directory."
    assert contents(tmp_path) == {"out": b"mine"}


def test_a_directory_of_someone_else_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.onnx").write_text("mine")
    with pytest.raises(
        DestinationError, match=r"holds files and no valid export.json, so zoo did not write it\."
    ) as error:
        export(gpt2(), tmp_path / "out", UNVERIFIED)
    assert "or remove this one." in str(error.value)
    assert contents(tmp_path) == {"out/model.onnx": b"mine"}


def test_a_directory_of_someone_else_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    def progress(stage: Stage) -> None:
        if stage.name == "write weights" and not (tmp_path / "out").exists():
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "theirs").write_text("theirs")

    with pytest.raises(DestinationError, match=r"holds files and no valid export\.json"):
        export(gpt2(), tmp_path / "out", UNVERIFIED, progress)
    assert contents(tmp_path) == {"out/theirs": b"theirs"}


def test_a_file_as_parent_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for destination in (tmp_path / "file" / "out", tmp_path / "file" / "deep" / "out"):
        with pytest.raises(DestinationError, match="file is a file, not a directory"):
            export(gpt2(), destination, UNVERIFIED)
    assert contents(tmp_path) == {"file": b""}


def test_a_name_that_is_too_long_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DestinationError, match="cannot be written: File name too long"):
        export(gpt2(), tmp_path / ("x" * 300), UNVERIFIED)
    assert not list(tmp_path.iterdir())


def test_a_name_of_the_longest_kind_will_do(tmp_path: Path) -> None:
    export(gpt2(), tmp_path / ("x" * 255), GRAPH_ONLY)
    assert (tmp_path / ("x" * 255) / "model.onnx").is_file()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a file system that nobody may write")
def test_an_unwritable_directory_is_reported() -> None:
    with pytest.raises(DestinationError, match="/proc/zoo/out cannot be written: "):
        export(gpt2(), Path("/proc/zoo/out"), GRAPH_ONLY)


def test_parents_are_made(tmp_path: Path) -> None:
    export(gpt2(), tmp_path / "a" / "b" / "c", GRAPH_ONLY)
    assert (tmp_path / "a" / "b" / "c" / "model.onnx").is_file()


def test_a_relative_destination_stays_where_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert export(gpt2(), Path("out"), GRAPH_ONLY).directory == Path("out")
    assert (tmp_path / "out" / "model.onnx").is_file()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for _ in range(2):
        export(gpt2(), tmp_path / "link", GRAPH_ONLY)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "model.onnx").is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"real", "link"}


def test_written_files_are_readable_by_others(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        export(gpt2(), tmp_path / "out", GRAPH_ONLY)
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755


def test_insufficient_space_is_reported_before_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 1500, "total": 2000})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    check_destination(tmp_path / "out", 1500)
    with pytest.raises(DestinationError) as error:
        export(gpt2(), tmp_path / "out", UNVERIFIED)
    assert str(error.value).startswith(f"{tmp_path / 'out'} needs ")
    assert "and its disk has 1.5 kB free.\n  Free some space, choose a directory on another disk" in str(
        error.value
    )
    assert not list(tmp_path.iterdir())
    export(gpt2(), tmp_path / "out", GRAPH_ONLY)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 128 kB, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", disk], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting needs privileges")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_disk_that_is_really_too_small(small_disk: Path) -> None:
    with pytest.raises(DestinationError, match=r"needs 1\d\d\.\d kB, and its disk has 131.1 kB free"):
        export(gpt2(vocab_size=4500), small_disk / "out", UNVERIFIED)
    with pytest.raises(DestinationError, match="cannot be written: its disk is full"):
        export(gpt2(vocab_size=3500), small_disk / "out", UNVERIFIED)
    assert not list(small_disk.iterdir())


@pytest.mark.slow
def test_two_threads_leave_one_whole_export(tmp_path: Path) -> None:
    specs = [gpt2(), bert()]
    for i, spec in enumerate(specs):
        export(spec, tmp_path / f"alone{i}", UNVERIFIED)
    alone = [contents(tmp_path / f"alone{i}") for i in range(2)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda i: _swapped_in(tmp_path, alone[i % 2]), range(60)))
    assert contents(tmp_path / "out") in alone
    assert {path.name for path in tmp_path.iterdir()} == {"out", "alone0", "alone1"}


def _swapped_in(directory: Path, files: dict[str, bytes]) -> None:
    with replacing(directory / "out") as place:
        for name, content in files.items():
            (place / name).write_bytes(content)


CODE = """
import sys
from pathlib import Path
from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.zoo.tiny import gpt2
for seed in range(5):
    export(gpt2(), Path(sys.argv[1]), ExportOptions(verify=False, seed=int(sys.argv[2])))
"""


@pytest.mark.slow
def test_two_processes_leave_one_whole_export(tmp_path: Path) -> None:
    runs = [
        subprocess.Popen([sys.executable, "-c", CODE, str(tmp_path / "out"), str(seed)]) for seed in (1, 2)
    ]
    assert [run.wait() for run in runs] == [0, 0]
    found = []
    for seed in (1, 2):
        export(gpt2(), tmp_path / f"alone{seed}", ExportOptions(verify=False, seed=seed))
        found.append(contents(tmp_path / f"alone{seed}"))
    assert contents(tmp_path / "out") in found
    assert {path.name for path in tmp_path.iterdir()} == {"out", "alone1", "alone2"}


def test_what_may_be_replaced(tmp_path: Path) -> None:
    check_replaceable(tmp_path / "absent")
    check_replaceable(tmp_path)
    export(gpt2(), tmp_path / "export", GRAPH_ONLY)
    check_replaceable(tmp_path / "export")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(DestinationError, match="dangling is a file, not a directory"):
        check_replaceable(tmp_path / "dangling")
