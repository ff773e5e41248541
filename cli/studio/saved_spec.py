"""Specs that leave the studio: as a file, or as a command that makes the same model."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

from cli.studio.typed_spec import TypedSpec
from specs.base.errors import UserError
from specs.forms.variation import assignments
from specs.language.load import read

_FILE = re.compile(r"(?:[\w][\w.-]*/)*[\w][\w.+=,@-]*\.ya?ml")


def saved(text: str, file: str, folder: Path, *, replace: bool) -> dict[str, Any]:
    """Write a text that is a valid spec to a YAML file in the studio's folder or below.

    Raises :class:`UserError` for another place, and for a file that is there unless it is to be replaced.
    """
    path = (folder / file).resolve() if _FILE.fullmatch(file) else None
    if path is None or not path.is_relative_to(folder.resolve()):
        raise UserError(
            f"The studio saves YAML files in {folder.resolve()} and below.\n  value: {file!r}\n  Use a name such as my-model.yaml."
        )
    TypedSpec.read(text, folder)
    if path.exists() and not replace:
        return {"exists": True, "file": file}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, "utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return {"exists": False, "file": file}


def command_of(text: str, base: str, folder: Path) -> str:
    """The command that builds the model of a text from a preset; without one that can, from a file that is to be saved."""
    typed = TypedSpec.read(text, folder)
    if base:
        changes = assignments(read(base), typed.document)
        if changes is not None:
            options = "".join(f" --set {shlex.quote(change)}" for change in changes)
            return f"zoo build {shlex.quote(base)}{options}"
    return f"zoo build {shlex.quote(f'{typed.model.name}.yaml')}"
