"""Output files at paths given by the user."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from specs.base.errors import UserError

PICTURES = (".png", ".svg")
"""Suffixes of picture files."""

_COMMENT = b"<!-- written by zoo -->\n"

ENDINGS = {
    ".html": _COMMENT,
    ".svg": _COMMENT,
    ".md": _COMMENT,
    ".mmd": b"%% written by zoo\n",
    ".json": b',\n  "written_by": "zoo"\n}\n',
    ".png": b"\x00\x00\x00\x0ctEXtSoftware\x00zoos\x92\xd3`\x00\x00\x00\x00IEND\xaeB`\x82",
}
"""The last bytes of the files that zoo writes, by suffix; only files with them are replaced.

They are comments of the formats; a PNG has the standard chunk that names the software, before its last.
"""

_LAST = {".json": b"\n}\n", ".png": b"\x00\x00\x00\x00IEND\xaeB`\x82"}
"""The closing bytes of a format, which the ending repeats."""


def write_own(path: Path, content: bytes, kind: str, option: str = "--output") -> None:
    """Write a file of a kind of :data:`ENDINGS` atomically, with the ending that identifies it later.

    Raises :class:`UserError` if the path is not writable; ``option`` names the option that sets it.
    """
    check_place(path, kind, option)
    write_whole(path, content.removesuffix(_LAST.get(kind, b"")) + ENDINGS[kind], option)


def write_whole(path: Path, content: bytes, option: str = "--output") -> None:
    """Write a file atomically, and create its parent directories.

    Raises :class:`UserError` if the path is not writable; ``option`` names the option that sets it.
    """
    from zoo.files.parents import parents_of
    from zoo.files.whole import write_file

    check_regular(path, option)
    try:
        with parents_of(path):
            write_file(path, content)
    except OSError as error:
        reason = f"{path.parent} is a file" if path.parent.is_file() else error.strerror or str(error)
        raise UserError(f"Cannot write {path}: {reason}.\n  Pass another {option}.") from error


def write_new(path: Path, text: str, force: bool, option: str = "FILE") -> None:
    """Write a text file atomically; :class:`UserError` if it exists and ``force`` is false."""
    if path.exists() and not force:
        raise UserError(f"{path} exists.\n  Pass another {option}, or --force to replace it.")
    write_whole(path, text.encode(), option)


def check_outputs(paths: Sequence[Path], suffixes: Sequence[str]) -> None:
    """Raise :class:`UserError` for unknown suffixes, missing extras and unwritable paths, before any work."""
    endings = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
    for path in paths:
        if path.suffix.lower() not in suffixes:
            raise UserError(
                f"--output must end in {endings}.\n  value: {str(path)!r}\n"
                f"  Pass a path such as {path.with_suffix(suffixes[0])}."
            )
        check_place(path, path.suffix.lower(), "--output")
        if path.suffix.lower() in PICTURES:
            from zoo.pictures.style import require_library

            require_library()


def check_regular(path: Path, option: str) -> None:
    """Raise :class:`UserError` if the path exists and is not a regular file."""
    from zoo.files.whole import irregular

    kind = irregular(path)
    if kind is None:
        return
    name = f"report{path.suffix or '.html'}"
    example = f", such as {path / name}" if path.is_dir() else ""
    raise UserError(
        f"{path} is {kind}, and only regular files are replaced.\n  Pass a file to {option}{example}."
    )


def check_place(path: Path, kind: str, option: str) -> None:
    """Raise :class:`UserError` if the path has a non-empty file that zoo did not write."""
    check_regular(path, option)
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}.\n  Pass another {option}.") from error
    with open(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        file.seek(max(0, size - len(ENDINGS[kind])))
        if size and file.read() != ENDINGS[kind]:
            raise UserError(
                f"{path} was not written by zoo, and is not replaced.\n  Pass another {option}, or remove the file."
            )
