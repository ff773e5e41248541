"""Files that commands write where the user says."""

from __future__ import annotations

from pathlib import Path

from specs.errors import UserError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, and the directories around it.

    Raises :class:`UserError` where the place cannot be written.
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
        raise UserError(f"{path} cannot be written: {reason}\n  give another --output") from error
