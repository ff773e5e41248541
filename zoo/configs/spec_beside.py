"""The spec.yaml that zoo writes beside the weights of a checkpoint."""

from __future__ import annotations

from pathlib import Path

from specs.language.load import read
from specs.language.named_blocks import with_named_blocks
from specs.language.validation import validate
from specs.model.model import Model

SPEC = "spec.yaml"
"""The spec beside the weights of a conversion, or in an export."""


def spec_beside(path: Path) -> Model | None:
    """Return the spec in a checkpoint's directory, or beside a file; None if there is none.

    Raises :class:`specs.base.errors.UserError` for an invalid one.
    """
    file = (path if path.is_dir() else path.parent) / SPEC
    return validate(with_named_blocks(read(file))) if file.is_file() else None
