"""Files that commands write where the user says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from specs.errors import UserError

PICTURES = (".png", ".svg")
"""What the names of drawn files end in."""

_COMMENT = b"<!-- written by zoo -->\n"

ENDINGS = {
    ".html": _COMMENT,
    ".svg": _COMMENT,
    ".md": _COMMENT,
    ".mmd": b"%% written by zoo\n",
    ".json": b',\n  "written_by": "zoo"\n}\n',
    ".png": b"\x00\x00\x00\x0ctEXtSoftware\x00zoos\x92\xd3`\x00\x00\x00\x00IEND\xaeB`\x82",
}
"""What the files that zoo writes end in, by what their names end in: only such files are replaced.

They are comments of the formats; a PNG has the standard chunk that names the software, before its last.
"""

_LAST = {".json": b"\n}\n", ".png": b"\x00\x00\x00\x00IEND\xaeB`\x82"}
"""What a file ends in that comes before its end, where there is such a thing."""


def write_own(path: Path, content: bytes, kind: str, option: str = "--output") -> None:
    """Write a file of a kind of :data:`ENDINGS`, with the ending by which it is known later, whole or not at all.

    Raises :class:`UserError` where the place cannot be written: ``option`` is what would name another.
    """
    check_place(path, kind, option)
    write_whole(path, content.removesuffix(_LAST.get(kind, b"")) + ENDINGS[kind], option)


def write_whole(path: Path, content: bytes, option: str = "--output") -> None:
    """Write a file whole or not at all, and the directories around it.

    Raises :class:`UserError` where the place cannot be written: ``option`` is what would name another.
    """
    from zoo.files.parents import parents_of
    from zoo.files.whole import write_file

    check_regular(path, option)
    try:
        with parents_of(path):
            write_file(path, content)
    except OSError as error:
        reason = f"{path.parent} is a file" if path.parent.is_file() else error.strerror or str(error)
        raise UserError(f"{path} cannot be written: {reason}.\n  Give another {option}.") from error


def check_outputs(paths: Sequence[Path], suffixes: Sequence[str]) -> None:
    """Raise :class:`UserError` for files that do not say what they are to be, or cannot be drawn, before there is work."""
    for path in paths:
        if path.suffix.lower() not in suffixes:
            raise UserError(
                f"--output must end in {', '.join(suffixes[:-1])} or {suffixes[-1]}\n  value: {str(path)!r}\n"
                f"  {path.with_suffix(suffixes[0])} would work"
            )
        check_place(path, path.suffix.lower(), "--output")
        if path.suffix.lower() in PICTURES:
            from zoo.pictures.style import require_library

            require_library()


def check_regular(path: Path, option: str) -> None:
    """Raise :class:`UserError` where something stands that is no regular file: a directory, a link, a device."""
    from zoo.files.whole import irregular

    kind = irregular(path)
    if kind is None:
        return
    name = f"report{path.suffix or '.html'}"
    example = f", such as {path / name}" if path.is_dir() else ""
    raise UserError(
        f"{path} is {kind}, and only regular files are replaced.\n  Give {option} a file{example}."
    )


def check_place(path: Path, kind: str, option: str) -> None:
    """Raise :class:`UserError` where something stands that zoo did not write as this kind of file, and is not empty."""
    check_regular(path, option)
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.\n  Give another {option}.") from error
    with open(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        file.seek(max(0, size - len(ENDINGS[kind])))
        if size and file.read() != ENDINGS[kind]:
            raise UserError(
                f"{path} was not written by zoo, and would be replaced.\n  Give another {option}, or remove it."
            )
