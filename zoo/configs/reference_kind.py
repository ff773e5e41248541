"""The kind of model that a user's argument names: a spec, an exported directory, or a checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from specs.base.errors import UserError
from specs.language.catalog import preset_names
from zoo.families.common.config import CONFIG
from zoo.files.destination import MANIFEST
from zoo.weights.adapters import refuse_adapter
from zoo.weights.gguf_file import is_gguf
from zoo.weights.hub import snapshot_of

ReferenceKind = Literal["spec", "export", "checkpoint"]


def reference_kind(reference: str) -> ReferenceKind:
    """Return the kind of a reference.  A preset takes precedence over a directory of its name; a name of nothing is a spec's.

    Raises :class:`specs.base.errors.UserError` for a directory that is none of the three.
    """
    path = Path(reference)
    if reference in preset_names():
        return "spec"
    if (path / MANIFEST).is_file():
        return "export"
    held = snapshot_of(path)
    refuse_adapter(held)
    if path.suffix == ".json" or is_gguf(path) or CONFIG in (os.listdir(held) if held.is_dir() else ()):
        return "checkpoint"
    if path.is_dir():
        raise UserError(
            f"{reference} is neither an export nor a checkpoint: it has no {MANIFEST} and no {CONFIG}.\n"
            "  Name a directory that zoo build, zoo export or zoo convert wrote, a checkpoint, a preset or a YAML file."
        )
    return "spec"
