"""Files and directories that the page may write: in the studio's folder or below."""

from __future__ import annotations

import re
from pathlib import Path

from specs.base.errors import UserError

_PLACE = re.compile(r"(?:[\w][\w.-]*/)*[\w][\w.+=,@-]*")


def place_below(folder: Path, name: str, suffixes: tuple[str, ...] = ()) -> Path:
    """The path of a name.  Raises :class:`UserError` for one that leads elsewhere, is hidden, or has another suffix."""
    path = (folder / name).resolve() if _PLACE.fullmatch(name) and len(name) <= 250 else None
    fits = path is not None and path.is_relative_to(folder.resolve()) and path != folder.resolve()
    if path is None or not fits or (suffixes and not name.endswith(suffixes)):
        what, example = ("YAML files", "my-model.yaml") if suffixes else ("directories", "build/my-model")
        raise UserError(
            f"The studio writes {what} in {folder.resolve()} and below.\n  value: {name!r}\n  Use a name such as {example}."
        )
    return path
