"""A spec as typed in the editor: its text, and the folder that it may read other specs from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from specs.base.errors import Mark, Problem, SpecError
from specs.language.document import Document
from specs.language.load import read_typed
from specs.language.named_blocks import with_named_blocks
from specs.language.preset_files import preset_names
from specs.language.reading import read_text
from specs.language.validation import validate
from specs.model.model import Model

SOURCE = "spec.yaml"
"""The name of the text in messages."""


@dataclass(frozen=True)
class TypedSpec:
    """A text with the document and the model that it states."""

    text: str
    document: Document
    model: Model

    @classmethod
    def read(cls, text: str, folder: Path) -> TypedSpec:
        """Read a text.  Raises :class:`SpecError` with every problem.

        It may extend presets, and YAML files in ``folder`` or below: a text that was shared must not read files elsewhere.
        """
        _check_base(text, folder)
        document = read_typed(text, folder / SOURCE)
        return cls(text, document, validate(with_named_blocks(document)))


def _check_base(text: str, folder: Path) -> None:
    """Raise an error for a base outside the folder."""
    own = read_text(text, SOURCE)
    reference = own.data.get("extends")
    if not isinstance(reference, str) or reference in preset_names():
        return
    base, inside = (folder / reference).resolve(), folder.resolve()
    if not base.is_relative_to(inside):
        rule = "must be a preset, or a file in the folder that zoo studio was started in"
        remedy = f"Start zoo studio in {os.path.dirname(reference) or '/'}, or extend a preset."
        raise SpecError([Problem(rule, ("extends",), reference, remedy, own.mark_of(("extends",)))])


def in_text(mark: Mark | None) -> bool:
    """Whether a mark is in the text itself rather than in a base."""
    return mark is not None and mark.source == SOURCE and mark.line is not None
