"""Specs that leave the studio: as a file, or as a command that makes the same model."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.studio.opened_spec import shell_path
from cli.studio.places import place_below
from cli.studio.typed_spec import TypedSpec
from specs.base.errors import UserError
from specs.forms.variation import assignments
from specs.language.document import Document
from zoo.configs.named_model import named_model


def saved(text: str, file: str, folder: Path, *, replace: bool) -> dict[str, Any]:
    """Write a text that is a valid spec to a YAML file in the studio's folder or below.

    Raises :class:`UserError` for another place, and for a file that is there unless it is to be replaced.
    """
    path = place_below(folder, file, (".yaml", ".yml"))
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


def command_of(text: str, opened: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """The command that builds the model of a text: from what was opened, or else from the file that has the text.

    ``opened``: the preset, checkpoint or file that the text started from.  Without a command that can, the file is to be saved.
    """
    typed = TypedSpec.read(text, folder)
    file = _file_below(opened["file"], folder)
    if file and Path(file).read_text("utf-8-sig") == text:
        return {"command": f"zoo build {shlex.quote(file)}", "unsaved": ""}
    for reference in filter(None, (opened["preset"], opened["weights"], file)):
        document = _document(reference)
        changes = None if document is None else assignments(document, typed.document)
        if changes is not None:
            options = "".join(f" --set {shlex.quote(change)}" for change in changes)
            return {"command": f"zoo build {shlex.quote(reference)}{options}", "unsaved": ""}
    name = file or shell_path(folder / f"{typed.model.name}.yaml")
    return {"command": f"zoo build {shlex.quote(name)}", "unsaved": name}


def _file_below(file: str, folder: Path) -> str:
    """The path of an opened file as it is typed in a shell; empty where it is not one below the folder."""
    if not file or not file.isprintable():
        return ""
    path = (folder / file).resolve()
    return shell_path(folder / file) if path.is_relative_to(folder.resolve()) and path.is_file() else ""


def _document(reference: str) -> Document | None:
    """The document that assignments change; None for a file that is gone or wrong by now."""
    try:
        return named_model(reference).document
    except UserError:
        return None
