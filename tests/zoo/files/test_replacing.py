"""How one directory takes the place of another: in one step, or in two, and what happens in between."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.zoo.files.outputs import put, tree
from zoo.files import destination
from zoo.files.destination import DestinationError, check_replaceable, replacing
from zoo.files.exchange import exchange
from zoo.files.sync import sync

NEW = {"model.onnx": "new", "spec.yaml": "new"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    put(tmp_path / "out", {"model.onnx": "old", "onnx/decoder.onnx": "old"})
    (tmp_path / "out" / "README.md").write_text("mine")
    return tmp_path / "out"


@pytest.fixture
def in_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that cannot exchange directories."""
    monkeypatch.setattr(destination, "exchange", lambda first, second: False)


def stands(out: Path) -> bool:
    """Whether the new output stands there, with the user's file, and nothing beside it."""
    found = tree(out)
    found.pop("export.json")
    return found == {**NEW, "README.md": "mine"} and os.listdir(out.parent) == [out.name]


# --------------------------------------------------------------------------------------------- in one step


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="needs renameat2")
def test_paths_change_places_at_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"in {name}").touch()
    assert exchange(tmp_path / "a", tmp_path / "b")
    assert [os.listdir(tmp_path / name) for name in ("a", "b")] == [["in b"], ["in a"]]
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "a", tmp_path / "absent")


def test_a_reader_always_finds_a_whole_output(out: Path) -> None:
    missing, stop = [], threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                (out / "export.json").stat()
                (out / "README.md").stat()
            except FileNotFoundError as error:
                missing.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(20):
            put(out, NEW)
    finally:
        stop.set()
        reader.join()
    assert not missing
    assert stands(out)


def test_everything_is_on_the_disk_before_it_takes_its_place(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def record(path: Path) -> None:
        synced.append(path.name)
        sync(path)

    def swap(first: Path, second: Path) -> bool:
        assert {"model.onnx", "spec.yaml", "export.json", first.name} <= set(synced)
        synced.clear()
        return exchange(first, second)

    monkeypatch.setattr("zoo.files.sync.sync", record)
    monkeypatch.setattr(destination, "sync", record)
    monkeypatch.setattr(destination, "exchange", swap)
    put(out, NEW)
    assert synced == [out.parent.name]


# -------------------------------------------------------------------------------------------- in two steps


@pytest.mark.usefixtures("in_two_steps")
def test_a_system_without_an_exchange_replaces_in_two_steps(out: Path) -> None:
    put(out, NEW)
    assert stands(out)


@pytest.mark.usefixtures("in_two_steps")
def test_the_first_of_two_steps_is_taken_back(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(out)
    with monkeypatch.context() as patch:
        _refuse_renames(patch, lambda source: source.name != "old" and (source.parent / "old").exists())
        with pytest.raises(DestinationError) as error:
            put(out, NEW)
    assert str(error.value) == f"{out} cannot be written: refused.\n  Choose another directory."
    assert tree(out) == before
    assert os.listdir(out.parent) == ["out"]


@pytest.mark.usefixtures("in_two_steps")
def test_the_location_of_the_old_directory_is_reported(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(out)
    with monkeypatch.context() as patch:
        _refuse_renames(patch, lambda source: (source.parent / "old").exists())
        with pytest.raises(DestinationError) as error:
            put(out, NEW)
    (left,) = out.parent.iterdir()
    assert str(error.value) == (
        f"{out} cannot be written: refused.\n"
        f"  The earlier directory is in {left}/old: move it back, and choose another directory."
    )
    assert tree(left / "old") == before
    put(out, NEW)  # puts it back first
    assert stands(out)


def _refuse_renames(patch: pytest.MonkeyPatch, refused) -> None:
    original = Path.rename

    def rename(path: Path, target: Path) -> Path:
        if refused(path):
            raise OSError(1, "refused")
        return original(path, target)

    patch.setattr(Path, "rename", rename)


# -------------------------------------------------------------------------------------------------- races


def test_files_saved_during_the_replacement_are_kept(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swap(first: Path, second: Path) -> bool:
        (out / "late").write_text("mine")
        (out / "saved").write_text("mine, again")
        os.replace(out / "saved", out / "README.md")  # as editors do
        return exchange(first, second)

    monkeypatch.setattr(destination, "exchange", swap)
    put(out, NEW)
    assert tree(out) == {
        **NEW, "README.md": "mine, again", "late": "mine", "export.json": tree(out)["export.json"],
    }  # fmt: skip
    assert os.listdir(out.parent) == ["out"]


def test_a_file_that_gets_in_the_way_while_it_is_replaced_is_kept(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap(first: Path, second: Path) -> bool:
        (out / "spec.yaml").write_text("mine")
        return exchange(first, second)

    monkeypatch.setattr(destination, "exchange", swap)
    put(out, NEW)
    put(out, NEW)
    (left,) = out.parent.glob(".out.partial-*")
    assert [path.read_text() for path in left.rglob("*") if path.is_file()] == ["mine"]


def test_an_empty_directory_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(mode=0o700)
    put(tmp_path / "out", NEW)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert os.listdir(tmp_path) == ["out"]


# ------------------------------------------------------------------------------- directories that must stay


def test_the_working_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    monkeypatch.chdir(tmp_path / "a" / "b")
    for path in (".", "", "../b", str(tmp_path / "a" / "b"), str(tmp_path / "link")):
        with pytest.raises(DestinationError) as error:
            put(Path(path), NEW)
        assert str(error.value) == (
            f"{Path(path)} is the working directory, which zoo does not replace.\n"
            f"  Choose a directory in it, such as {Path(path) / 'out'}."
        )
    for path in ("..", "../..", str(tmp_path), "/"):
        with pytest.raises(DestinationError, match="contains the working directory, and zoo does not"):
            put(Path(path), NEW)
    put(Path("out"), NEW)
    assert tree(tmp_path / "a" / "b")["out/model.onnx"] == "new"


def test_a_working_directory_that_is_gone_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    put(tmp_path / "out", NEW)
    assert tree(tmp_path / "out")["model.onnx"] == "new"


def test_a_mount_point_is_refused() -> None:
    with pytest.raises(DestinationError) as error:
        check_replaceable(Path("/proc"))
    assert str(error.value) == (
        "/proc is a mount point, which cannot be replaced.\n  Choose a directory in it, such as /proc/out."
    )


def test_parents_that_were_made_are_removed_when_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "a" / "b" / "out"):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
