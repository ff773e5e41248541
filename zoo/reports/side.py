"""One side of a comparison: a preset, a spec file, an exported directory, or a checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specs.catalog import preset_names
from specs.document import Document
from specs.errors import UserError
from specs.load import read, varied, with_named_blocks
from specs.model import Model
from specs.resolved import resolved
from specs.validation import validate
from zoo.destination import MANIFEST


@dataclass(frozen=True)
class Side:
    """A spec, the document that assignments would change, and what an export recorded of itself, if it is one.

    ``label`` is what to call it: the name of a preset and its changes, or the path that was given.
    """

    label: str
    document: Document
    spec: Model
    export: Mapping[str, Any] | None = None


def read_side(reference: str, assignments: Sequence[str] = ()) -> Side:
    """The side that a reference names, with assignments laid over its spec.

    Raises :class:`specs.errors.UserError` for what is none, or has a wrong spec.
    """
    path, export = Path(reference), None
    if path.is_dir() and reference not in preset_names():
        export = _manifest(path)
    if export is not None:
        document = read(path / "spec.yaml")
    elif reference not in preset_names() and (path.is_dir() or path.suffix in (".json", ".gguf")):
        document = _imported(path)
    else:
        document = read(reference)
    document = varied(document, assignments)
    spec = validate(with_named_blocks(document))
    label = spec.name if assignments or reference in preset_names() else reference
    return Side(label, document, spec, None if assignments else export)


def _manifest(directory: Path) -> Mapping[str, Any] | None:
    """What an export recorded of itself, or None where the directory is none."""
    file = directory / MANIFEST
    if not file.exists():
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {error}\n  export the model again") from None
    if not isinstance(data, dict) or not {"target", "precision", "layout", "files", "graphs"} <= data.keys():
        raise UserError(f"{file} is not that of an export\n  export the model again")
    return data


def _imported(path: Path) -> Document:
    """The document of a checkpoint's config."""
    from zoo.configs.config import CONFIG
    from zoo.configs.importing import import_spec

    if path.is_dir() and CONFIG not in os.listdir(path):
        raise UserError(
            f"{path} is neither an export nor a checkpoint: it has no {MANIFEST} and no {CONFIG}\n"
            "  give a directory that zoo build, zoo export or zoo convert wrote, a checkpoint, a preset or a YAML file"
        )
    return Document(resolved(import_spec(path)))
