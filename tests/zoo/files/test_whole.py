"""A file that is written whole or not at all, and replaces nothing but regular files."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from zoo.files.whole import irregular, write_file


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / ("x" * 255)
    write_file(file, b"first")
    os.chmod(file, 0o640)
    write_file(file, b"second")
    assert file.read_bytes() == b"second"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == [file.name]


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


KINDS: dict[str, Callable[[Path], None]] = {
    "a directory": Path.mkdir,
    "a symbolic link": lambda path: path.symlink_to("victim"),
    "a pipe": os.mkfifo,
    "a socket": _socket,
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_but_regular_files_is_replaced(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim").write_text("theirs")
    KINDS[kind](tmp_path / "x")
    before = (tmp_path / "x").lstat()
    with pytest.raises(OSError, match=f"It is {kind}"):
        write_file(tmp_path / "x", b"new")
    assert os.path.samestat((tmp_path / "x").lstat(), before)
    assert (tmp_path / "victim").read_text() == "theirs"
    assert sorted(os.listdir(tmp_path)) == ["victim", "x"]


def test_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert irregular(tmp_path / "file") is None
    assert irregular(tmp_path / "absent") is None
    assert irregular(tmp_path / "file" / "below") is None
    assert irregular(Path("/dev/null")) == "a device"


def test_a_link_that_appears_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "victim").write_text("theirs")
    original = os.fsync

    def sync(descriptor: int) -> None:
        original(descriptor)
        (tmp_path / "x").symlink_to("victim")

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(OSError, match="It is a symbolic link"):
        write_file(tmp_path / "x", b"new")
    assert (tmp_path / "victim").read_text() == "theirs"
    assert sorted(os.listdir(tmp_path)) == ["victim", "x"]


def test_writers_at_once_do_not_mix(tmp_path: Path) -> None:
    contents = [bytes([i]) * 100_000 for i in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda i: write_file(tmp_path / "x", contents[i % 4]), range(24)))
    assert (tmp_path / "x").read_bytes() in contents
    assert os.listdir(tmp_path) == ["x"]
