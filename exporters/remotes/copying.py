"""Copying files while checking their digests."""

from __future__ import annotations

import hashlib
from pathlib import Path

from specs.errors import UserError
from zoo.integrity import BLOCK
from zoo.progress import Progress, Stage


def copy_file(source: Path, target: Path, progress: Progress, sha256: str | None = None) -> None:
    """Copy a file to a new path, creating directories as needed.

    Raises :class:`specs.errors.UserError` where it cannot be read, or its digest is not ``sha256``.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, done = hashlib.sha256(), 0
    total = source.stat().st_size
    with source.open("rb") as read, target.open("xb") as written:
        while block := read.read(BLOCK):
            digest.update(block)
            written.write(block)
            done += len(block)
            progress(Stage(f"copy {target.name}", done, total))
    if sha256 is not None and digest.hexdigest() != sha256:
        raise UserError(f"{source} changed while it was copied.\n  Run the command again.")
