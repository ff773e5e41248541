"""One side of a comparison: a preset, a spec file, an exported directory, or a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specs.catalog import preset_names
from specs.document import Document
from specs.errors import UserError
from specs.load import read, varied
from specs.model import Model
from specs.named_blocks import with_named_blocks
from specs.resolved import resolved
from specs.validation import validate
from zoo.destination import MANIFEST
from zoo.manifest import ExportRecord, read_record


@dataclass(frozen=True)
class Side:
    """A spec, the document that assignments would change, and what an export recorded of itself, if it is one.

    ``label`` is what to call it: the name of a preset and its changes, or the path that was given.
    """

    label: str
    document: Document
    spec: Model
    export: ExportRecord | None = None


def read_side(reference: str, assignments: Sequence[str] = ()) -> Side:
    """The side that a reference names, with assignments laid over its spec.

    Raises :class:`specs.errors.UserError` for what is none, or has a wrong spec.
    """
    path, export = Path(reference), None
    if reference not in preset_names() and (path / MANIFEST).exists():
        export = read_record(path)
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


def side_of(given: Model | str | os.PathLike[str]) -> Side:
    """The side that is a spec, or what a reference names.  Raises :class:`specs.errors.UserError`."""
    if isinstance(given, Model):
        return Side(given.name, Document(resolved(given)), given)
    return read_side(os.fspath(given))


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
