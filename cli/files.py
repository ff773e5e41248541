"""Files that commands write where the user says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specs.errors import UserError

PICTURES = (".png", ".svg")
"""What the names of drawn files end in."""

BEGINNINGS = {".png": b"\x89png", ".svg": b"<svg", ".html": b"<!doctype html>", ".json": b"{"}
"""What files begin with, in small letters, by what their names end in."""


def write_whole(path: Path, content: bytes, option: str = "--output") -> None:
    """Write a file whole or not at all, and the directories around it.

    Raises :class:`UserError` where the place cannot be written: ``option`` is what would name another.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_bytes(content)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        reason = f"{path.parent} is a file" if path.parent.is_file() else error.strerror or str(error)
        raise UserError(f"{path} cannot be written: {reason}\n  give another {option}") from error


def check_outputs(paths: Sequence[Path], suffixes: Sequence[str]) -> None:
    """Raise :class:`UserError` for files that do not say what they are to be, or cannot be drawn, before there is work."""
    for path in paths:
        if path.suffix.lower() not in suffixes:
            raise UserError(
                f"--output must end in {', '.join(suffixes[:-1])} or {suffixes[-1]}\n  value: {str(path)!r}\n"
                f"  {path.with_suffix(suffixes[0])} would work"
            )
        check_place(path, BEGINNINGS[path.suffix.lower()], "--output")
        if path.suffix.lower() in PICTURES:
            from zoo.pictures.style import require_library

            require_library()


def check_place(path: Path, beginning: bytes, option: str) -> None:
    """Raise :class:`UserError` where a directory stands, or a file that does not begin as what is to be written there."""
    if path.is_dir():
        name = f"report{path.suffix or '.html'}"
        raise UserError(f"{path} is a directory\n  give {option} a file, such as {path / name}")
    if path.is_file() and path.stat().st_size:
        with path.open("rb") as file:
            if file.read(len(beginning)).lower() != beginning:
                raise UserError(
                    f"{path} holds something else, and would be replaced\n  give another {option}, or remove it"
                )
