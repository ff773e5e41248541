"""One side of a comparison: a preset, a spec file, an exported directory, or a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from specs.forms.resolved import resolved
from specs.language.document import Document
from specs.language.reference import preset_file
from specs.model.model import Model
from zoo.configs.named_model import named_model
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
    named = named_model(reference, assignments)
    export = read_record(named.path) if named.kind == "export" else None
    label = named.spec.name if assignments or preset_file(reference) else reference
    return Side(label, named.document, named.spec, None if assignments else export)


def side_of(reference: Model | str | os.PathLike[str]) -> Side:
    """The side of a spec or reference.  Raises :class:`specs.base.errors.UserError`."""
    if isinstance(reference, Model):
        return Side(reference.name, Document(resolved(reference)), reference)
    return read_side(os.fspath(reference))
