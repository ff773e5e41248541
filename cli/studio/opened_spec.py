"""Specs that the studio opens by a reference: a preset, a file, a checkpoint, a hub id, or an address that holds a spec."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cli.studio.link import is_link, text_of_link
from specs.base.errors import UserError
from specs.files.new_spec import STARTS
from specs.forms.resolved import resolved
from specs.language.load import read
from specs.language.preset_files import preset_names
from specs.language.reference import hub_file, locate
from specs.language.spec_file import read_file
from specs.language.variant import unclaimed
from specs.language.writing import dump
from zoo.configs.named_model import model_kind, named_model

FIRST = STARTS["decoder"]
"""The preset that the studio opens without a SPEC."""


@dataclass(frozen=True)
class OpenedSpec:
    """The text of a spec, the preset that it starts from, and the file that it was read from.

    ``weights``: the checkpoint or hub repository with the model's own weights, if any; ``skipped``: fields of a config that
    have no effect.
    """

    label: str
    text: str
    preset: str = ""
    file: str = ""
    weights: str = ""
    skipped: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


def opened(reference: str) -> OpenedSpec:
    """The spec that a reference names.  Raises :class:`UserError` for one that names none."""
    if is_link(reference):
        return OpenedSpec("a shared spec", text_of_link(reference))
    if reference in preset_names():
        return OpenedSpec(reference, dump(unclaimed(read(reference)).data), preset=reference)
    path = Path(reference)
    if path.is_file() and model_kind(reference) == "spec":
        read_file(path)  # says what is wrong with the file
        return OpenedSpec(path.name, path.read_text("utf-8-sig"), file=str(path))
    named = named_model(reference)
    return OpenedSpec(path.name or reference, dump(resolved(named.spec)), weights=named.own_weights or "")


def opened_below(reference: str, folder: Path, otherwise: str = "") -> OpenedSpec:
    """The spec that the page asks for: a preset, an address, a path below the studio's folder, or a hub id.

    ``otherwise``: the preset to open where nothing has this name.
    """
    if is_link(reference) or reference in preset_names():
        return opened(reference)
    if not reference.isprintable():
        raise UserError(
            f"A path must be printable text.\n  value: {reference!r}\n  Remove the other characters."
        )
    path = (folder / reference).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise UserError(
            f"The page opens files in {folder.resolve()} and below.\n  value: {reference!r}\n"
            "  Start zoo studio with the path, or in a folder above it."
        )
    if not path.exists() and hub_file(reference)[0] and not (folder / reference).parent.exists():
        return opened(reference)
    if not path.exists():
        if otherwise in preset_names():
            return opened(otherwise)
        locate(reference)  # suggests the nearest preset
    spec = opened(shell_path(folder / reference))
    return replace(spec, file=str(path.relative_to(folder.resolve()))) if spec.file else spec


def shell_path(path: Path) -> str:
    """A path as it is typed in the directory in which the studio was started."""
    try:
        return os.path.relpath(path)
    except ValueError:  # another drive
        return str(path)
