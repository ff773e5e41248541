"""Files that are read only where they are regular, of a bounded size, and in their directory."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from pathlib import Path

import pytest

from zoo.files.reading import UnsafeFileError, copy_regular, open_regular, read_regular, unreadable

SECRET = b"a secret"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory, beside a file that must not be read through it."""
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "plain").write_bytes(b"plain")
    return tmp_path / "in"


def test_regular_files_and_links_to_them_inside_are_read(place: Path) -> None:
    (place / "link").symlink_to("plain")
    (place / "below").mkdir()
    (place / "below" / "up").symlink_to("../plain")
    for name in ("plain", "link", "below/up"):
        assert read_regular(place / name, place) == b"plain"
    copy_regular(place / "link", place / "copy", place)
    assert not (place / "copy").is_symlink()
    assert (place / "copy").read_bytes() == b"plain"


@pytest.mark.parametrize("target", ["../secret", "ABSOLUTE", "chain", "below/out"])
def test_links_out_of_the_directory_are_refused(place: Path, target: str) -> None:
    (place / "below").mkdir()
    (place / "below" / "out").symlink_to("../../secret")
    (place / "chain").symlink_to("../secret")
    (place / "x").symlink_to(place.parent / "secret" if target == "ABSOLUTE" else target)
    with pytest.raises(UnsafeFileError) as refused:
        read_regular(place / "x", place)
    text = unreadable(place / "x", refused.value)
    assert text.startswith(f"{place / 'x'} cannot be read: it is a link out of its directory, to ")
    assert text.endswith("  Replace the link by the file; cp -rL copies a directory and does so.")
    with pytest.raises(UnsafeFileError):
        copy_regular(place / "x", place / "copied", place)
    assert not (place / "copied").exists()
    assert read_regular(place / "x") == SECRET  # the user may name any file


def test_a_linked_directory_leads_nowhere_either(place: Path) -> None:
    (place.parent / "other").mkdir()
    (place.parent / "other" / "file").write_bytes(SECRET)
    (place / "below").symlink_to("../other")
    with pytest.raises(UnsafeFileError, match="a link out of its directory"):
        read_regular(place / "below" / "file", place)
    with pytest.raises(UnsafeFileError, match="a link out of its directory"):
        read_regular(place / ".." / "secret", place)


def test_a_snapshot_of_the_hub_reads_the_contents_of_its_own_repository(tmp_path: Path) -> None:
    hub = tmp_path / "hub"
    for repository in ("models--a--b", "models--c--d"):
        snapshot = hub / repository / "snapshots" / ("0" * 40)
        (snapshot / "1_Pooling").mkdir(parents=True)
        (hub / repository / "blobs").mkdir()
        (hub / repository / "blobs" / "e3b0").write_bytes(repository.encode())
        (snapshot / "config.json").symlink_to("../../blobs/e3b0")
        (snapshot / "1_Pooling" / "config.json").symlink_to("../../../blobs/e3b0")
    snapshot = hub / "models--a--b" / "snapshots" / ("0" * 40)
    assert read_regular(snapshot / "config.json", snapshot) == b"models--a--b"
    pooling = snapshot / "1_Pooling"
    assert read_regular(pooling / "config.json", pooling) == b"models--a--b"
    (snapshot / "other").symlink_to("../../../models--c--d/blobs/e3b0")
    with pytest.raises(UnsafeFileError, match="a link out of its directory"):
        read_regular(snapshot / "other", snapshot)


def test_pipes_sockets_devices_and_directories_are_refused_at_once(place: Path) -> None:
    os.mkfifo(place / "pipe")
    (place / "directory").mkdir()
    (place / "null").symlink_to("/dev/null")
    with contextlib.chdir(place), socket.socket(socket.AF_UNIX) as listener:  # its path is limited
        listener.bind("socket")
    for name, kind in (("pipe", "a pipe"), ("directory", "a directory"), ("socket", "a socket")):
        for within in (place, None):
            with pytest.raises(UnsafeFileError, match=f"it is {kind}, and only regular files are read"):
                open_regular(place / name, within)
    with pytest.raises(UnsafeFileError, match="it is a device"):
        open_regular(place / "null")


def test_large_and_sparse_files_are_refused_before_they_are_read(place: Path) -> None:
    with (place / "sparse").open("wb") as file:
        file.truncate(300 * 10**9)
    with pytest.raises(UnsafeFileError, match="it has more than 256 MiB") as refused:
        read_regular(place / "sparse", place)
    assert refused.value.errno == errno.EFBIG
    with pytest.raises(UnsafeFileError, match="it has more than 256 MiB"):
        copy_regular(place / "sparse", place / "copy", place)
    assert not (place / "copy").exists()
    assert read_regular(place / "plain", most=5) == b"plain"
    with pytest.raises(UnsafeFileError):
        read_regular(place / "plain", most=4)


def test_absent_files_and_impossible_names_are_errors_of_the_system(place: Path) -> None:
    (place / "dangling").symlink_to("nowhere")
    (place / "loop").symlink_to("loop")
    for name in ("absent", "dangling", "loop", "a\0b", "\ud800"):
        for within in (place, None):
            with pytest.raises((UnsafeFileError, OSError), match=r"Errno") as refused:
                open_regular(place / name, within)
            assert unreadable(place / name, refused.value).endswith("Check the path.")


def test_a_link_that_appears_meanwhile_is_not_followed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = os.path.realpath

    def swap(path: str | Path, *, strict: bool = False) -> str:
        real = found(str(path), strict=strict)
        if str(path).endswith("plain"):
            (place / "plain").unlink()
            (place / "plain").symlink_to("../secret")
        return real

    monkeypatch.setattr(os.path, "realpath", swap)
    with pytest.raises(OSError, match="symbolic link"):
        read_regular(place / "plain", place)
