"""What a process that was killed leaves behind is cleared, and nothing else."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

import pytest

from tests.zoo.files.outputs import put, tree
from zoo.files import workplace
from zoo.files.carrying import remove_tree
from zoo.files.destination import replacing
from zoo.files.exchange import exchange
from zoo.files.workplace import new_directory

NEW = {"model.onnx": "new"}
LEFT = ".out.partial-0123abcd"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    put(tmp_path / "out", {"model.onnx": "old", "onnx/decoder.onnx": "old"})
    (tmp_path / "out" / "README.md").write_text("mine")
    return tmp_path / "out"


def left(out: Path, holds: str, made_here: bool = False) -> Path:
    """A directory that a killed process left, with another name of the user's file."""
    swapped = out.parent / LEFT / holds
    put(swapped, {"model.onnx": "older", "onnx/decoder.onnx": "older"})
    os.link(out / "README.md", swapped / "README.md")
    return swapped.rename(swapped.with_name(f"new-{swapped.stat().st_ino}")) if made_here else swapped


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


@pytest.mark.parametrize("holds", ["old", "new-1", "new"])
def test_leftovers_of_a_killed_process_are_cleared(out: Path, holds: str) -> None:
    left(out, holds, made_here=holds == "new")
    put(out, NEW)
    assert os.listdir(out.parent) == ["out"]
    assert tree(out) == {**NEW, "README.md": "mine", "export.json": tree(out)["export.json"]}


def test_partial_output_is_cleared(out: Path) -> None:
    new = new_directory(_made(out.parent / LEFT))
    (new / "onnx").mkdir()
    (new / "model.onnx").write_text("half")
    (out.parent / LEFT / "new-").mkdir()
    (out.parent / LEFT / f".{new.name}.reduced-x").mkdir()
    (out.parent / ".out.partial-00000000").mkdir()
    put(out, NEW)
    assert os.listdir(out.parent) == ["out"]


def test_the_users_only_copy_is_kept(out: Path) -> None:
    swapped = left(out, "new-1")
    (swapped / "late").write_text("mine")
    (swapped / "saved").write_text("newer")
    (swapped / "saved").replace(swapped / "README.md")
    put(out, NEW)
    assert tree(out) == {
        **NEW, "README.md": "mine", "late": "mine", "export.json": tree(out)["export.json"],
    }  # fmt: skip
    assert tree(out.parent / LEFT) == {"new-1": None, "new-1/README.md": "newer"}


def test_a_deleted_file_does_not_come_back(out: Path) -> None:
    left(out, "new", made_here=True)
    (out / "README.md").unlink()
    put(out, NEW)
    assert "README.md" not in tree(out)
    assert os.listdir(out.parent) == ["out"]


def test_the_previous_directory_is_restored_first(out: Path) -> None:
    out.rename(_made(out.parent / LEFT) / "old")
    with pytest.raises(ZeroDivisionError), replacing(out):
        raise ZeroDivisionError
    assert tree(out)["model.onnx"] == "old"
    assert os.listdir(out.parent) == ["out"]


@pytest.mark.parametrize("kind", ["link", "inner", "swapped", "file"])
def test_links_are_not_followed(out: Path, tmp_path: Path, kind: str) -> None:
    victim = tmp_path / "victim"
    put(victim / "out", {"model.onnx": "theirs"})
    (victim / "new").mkdir()
    (victim / "new" / "data").write_text("theirs")
    trap = tmp_path / LEFT
    if kind == "link":
        trap.symlink_to("victim")
    elif kind == "inner":
        trap.mkdir()
        for name in ("new-", "old", "new-1"):
            (trap / name).symlink_to("../victim")
    elif kind == "swapped":
        trap.mkdir()
        (trap / "old").symlink_to("../victim/out")
    else:
        trap.write_text("theirs")
    before = tree(victim), tree(trap)
    put(out, NEW)
    assert (tree(victim), tree(trap)) == before
    assert trap.exists()


@pytest.mark.parametrize(
    "name", [".out.partial-mine", ".out.partial-0123abcd.bak", ".output.partial-0123abcd", "out.partial"]
)
def test_other_names_are_not_cleared(out: Path, name: str) -> None:
    (out.parent / name / "new").mkdir(parents=True)
    put(out, NEW)
    assert (out.parent / name / "new").is_dir()


def test_foreign_files_in_a_workplace_are_kept(out: Path) -> None:
    (out.parent / LEFT / "src").mkdir(parents=True)
    (out.parent / LEFT / "notes").write_text("mine")
    put(out, NEW)
    assert tree(out.parent / LEFT) == {"notes": "mine", "src": None}


def test_the_workplace_of_a_running_process_is_kept(out: Path) -> None:
    new = new_directory(_made(out.parent / LEFT))
    descriptor = os.open(out.parent / LEFT, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        put(out, NEW)
        assert new.is_dir()
    finally:
        os.close(descriptor)
    put(out, NEW)
    assert not (out.parent / LEFT).exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupts_while_clearing_leave_nothing(
    out: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(*arguments: object) -> None:
        raise KeyboardInterrupt

    def clear(directory: Path) -> None:
        signal.raise_signal(number)
        original(directory)
        signal.raise_signal(number)

    original, before = remove_tree, tree(out)
    monkeypatch.setattr(workplace, "remove_tree", clear)
    handlers = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        with pytest.raises(KeyboardInterrupt), replacing(out):
            raise ZeroDivisionError
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
    assert tree(out) == before
    assert os.listdir(out.parent) == ["out"]


def test_an_interrupt_while_directories_are_exchanged_comes_after_it(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zoo.files import destination

    def interrupted(first: Path, second: Path) -> bool:
        signal.raise_signal(signal.SIGINT)
        return exchange(first, second)

    monkeypatch.setattr(destination, "exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        put(out, NEW)
    assert tree(out)["model.onnx"] == "new"
    assert tree(out)["README.md"] == "mine"
    assert os.listdir(out.parent) == ["out"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
