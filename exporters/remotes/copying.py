"""Copying files while checking their digests."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from specs.base.errors import UserError
from zoo.core.progress import Progress, Stage
from zoo.files.reading import open_regular, unreadable
from zoo.record.integrity import BLOCK


def copy_file(
    source: Path,
    target: Path,
    progress: Progress,
    *,
    within: Path | None = None,
    size: int | None = None,
    sha256: str | None = None,
) -> None:
    """Copy a regular file to a new path, creating directories as needed.

    It must lie in the directory ``within``, if given. Raises :class:`specs.base.errors.UserError` if it cannot be read,
    or its size or digest is not ``size`` or ``sha256``.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, done = hashlib.sha256(), 0
    try:
        opened = open_regular(source, within)
    except OSError as error:
        raise UserError(unreadable(source, error)) from None
    with opened as read, target.open("xb") as written:
        total = os.fstat(read.fileno()).st_size
        if size not in (None, total):
            raise UserError(
                f"{source} has {total:,} bytes, and {size:,} are stated.\n  Publish the export again."
            )
        while block := read.read(BLOCK):
            digest.update(block)
            done += len(block)
            if done > total:
                break
            written.write(block)
            progress(Stage(f"copy {target.name}", done, total))
    if done != total or sha256 not in (None, digest.hexdigest()):
        raise UserError(f"{source} changed while it was copied.\n  Run the command again.")
