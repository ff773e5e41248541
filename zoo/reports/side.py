"""One side of a comparison: a preset, a spec file, an exported directory, or a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specs.forms.resolved import resolved
from specs.language.catalog import preset_names
from specs.language.document import Document
from specs.language.load import read, varied
from specs.language.named_blocks import with_named_blocks
from specs.language.validation import validate
from specs.model.model import Model
from zoo.configs.reference_kind import reference_kind
from zoo.record.manifest import ExportRecord, read_record


@dataclass(frozen=True)
class Side:
    """A spec, the document that assignments change, and the manifest of an export, if it is one.

    ``label``: the preset's name and changes, or the path.
    """

    label: str
    document: Document
    spec: Model
    export: ExportRecord | None = None


def read_side(reference: str, assignments: Sequence[str] = ()) -> Side:
    """Read the side that a reference names, with assignments applied to its spec.

    Raises :class:`specs.base.errors.UserError` for an unknown reference or an invalid spec.
    """
    path, kind = Path(reference), reference_kind(reference)
    export = read_record(path) if kind == "export" else None
    if kind == "checkpoint":
        from zoo.configs.importing import import_spec

        document = Document(resolved(import_spec(path)))
    else:
        document = read(reference if export is None else path / "spec.yaml")
    document = varied(document, assignments)
    spec = validate(with_named_blocks(document))
    label = spec.name if assignments or reference in preset_names() else reference
    return Side(label, document, spec, None if assignments else export)


def side_of(reference: Model | str | os.PathLike[str]) -> Side:
    """The side of a spec or reference.  Raises :class:`specs.base.errors.UserError`."""
    if isinstance(reference, Model):
        return Side(reference.name, Document(resolved(reference)), reference)
    return read_side(os.fspath(reference))
