"""Files that commands write where the user says."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from specs.errors import UserError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, and the directories around it.

    Raises :class:`specs.errors.UserError` where that cannot be.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}\n  give another place") from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
