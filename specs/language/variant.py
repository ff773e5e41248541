"""The self-description of a variant: it names its base and its changes, and inherits no claims of its base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specs.base.errors import SpecPath, path_text
from specs.language.document import Document
from specs.language.writing import flow

CLAIMS = ("summary", "source", "year", "expect")
"""The keys of a spec's claims about itself."""

_PUBLICATION = ("source", "year")
_LISTED = 4
_WIDTH = 60


def unclaimed(base: Document, *, published: bool = False) -> Document:
    """A base without its claims, for inheritance by variants; ``published``: a preset inherits the publication of the preset that
    it extends."""
    return without(base, *(key for key in CLAIMS if not (published and key in _PUBLICATION)))


def describe(variant: Document, base: Document, overrides: Sequence[Document]) -> None:
    """Add a summary to a variant without one: its base, and the changes of the overrides."""
    name = base.data.get("name")
    changes = [text for override in overrides for text in _changes(override.data)]
    derived = f"Variant of {name}: {_listed(changes)}" if changes else f"Same architecture as {name}"
    variant.data.setdefault("summary", derived)


def without(document: Document, *keys: str) -> Document:
    """A copy of a document without some of its top-level keys."""
    data = {key: value for key, value in document.data.items() if key not in keys}
    return Document(data, document.marks, document.key_marks)


def _changes(data: Any, path: SpecPath = ()) -> Iterator[str]:
    """The values of an override, each as ``path=value``."""
    for key, value in data.items():
        key_path = (*path, key)
        if key_path[0] in (*CLAIMS, "name"):
            continue
        if isinstance(value, Mapping) and value:
            yield from _changes(value, key_path)
        else:
            text = f"{path_text(key_path)}={flow(value)}"
            yield text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def _listed(changes: Sequence[str]) -> str:
    more = f" and {len(changes) - _LISTED} more" if len(changes) > _LISTED else ""
    return ", ".join(changes[:_LISTED]) + more
