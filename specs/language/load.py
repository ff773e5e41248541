"""Loading of specs: resolves `extends`, assignments and named blocks, then validates."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from specs.base.errors import Mark, Problem, SpecError
from specs.base.registry import held_by_new_kind
from specs.language.assignment import parse_assignment
from specs.language.document import Document
from specs.language.merging import merge
from specs.language.named_blocks import with_named_blocks, without_abandoned_blocks
from specs.language.preset_files import PRESETS
from specs.language.reading import read_text
from specs.language.reference import locate, locate_base
from specs.language.spec_file import read_file
from specs.language.validation import validate
from specs.language.variant import describe, unclaimed, without
from specs.model.model import Model

MAX_EXTENDS = 64
"""Maximum length of a chain of `extends`."""

MAX_NAME = 60
"""The longest name that a variant is given after its changes, in characters."""


def load(reference: str | os.PathLike[str], assignments: Sequence[str] = ()) -> Model:
    """Load the spec of a preset or a YAML file, with ``path=value`` assignments applied in order.

    Raises :class:`SpecError` with every problem found.
    """
    return validate(load_document(reference, assignments))


def load_document(reference: str | os.PathLike[str], assignments: Sequence[str]) -> Document:
    """The resolved document of a spec, not yet validated."""
    return with_named_blocks(varied(read(reference), assignments))


def read(reference: str | os.PathLike[str]) -> Document:
    """The document of a preset or a YAML file merged with its base, before assignments.

    A variant does not inherit its base's claims: see :mod:`specs.language.variant`.
    """
    path = locate(os.fspath(reference))
    return _merged(_chain(read_file(path), path))


def read_typed(text: str, path: Path) -> Document:
    """The document of a text in place of the contents of ``path``, merged with its base; the file need not exist."""
    return _merged(_chain(read_text(text, path.name), path))


def _merged(chain: Sequence[tuple[Document, Path]]) -> Document:
    """The last document of a chain of `extends`, with all others laid over it."""
    (document, _), *overrides = reversed(chain)
    for override, path in overrides:
        base, own = document, without(override, "extends")
        inherited = unclaimed(base, published=path.parent == PRESETS)
        document = without_abandoned_blocks(merge(inherited, own, held_by_new_kind), [own])
        describe(document, base, [own])
    return document


def _chain(document: Document, path: Path) -> list[tuple[Document, Path]]:
    """The document of a file with its path, then of its base, and so on."""
    documents, files = [document], [path.resolve()]
    while "extends" in documents[-1].data:
        document, reference = documents[-1], documents[-1].data["extends"]
        if not isinstance(reference, str):
            rule = "must be a preset name or the path of a file"
            raise _bad_extends(document, rule, "Write it as in extends: bert-base.")
        base = locate_base(reference, path.parent, document.mark_of(("extends",)))
        if base.resolve() in files:
            loop = " -> ".join(step.name for step in (*files, base))
            remedy = "Extend a preset, or a file outside this cycle."
            raise _bad_extends(document, f"must not form a cycle: {loop}", remedy)
        if len(documents) > MAX_EXTENDS:
            rule = f"must not form a chain of more than {MAX_EXTENDS} specs"
            raise _bad_extends(document, rule, "Extend a spec nearer to the root of the chain.")
        documents.append(read_file(base))
        files.append(base.resolve())
        path = base
    return [*zip(documents, files, strict=True)]


def _bad_extends(document: Document, rule: str, remedy: str) -> SpecError:
    path = ("extends",)
    return SpecError([Problem(rule, path, document.data["extends"], remedy, document.mark_of(path))])


def varied(document: Document, assignments: Sequence[str], name: str | None = None) -> Document:
    """Apply assignments to a document, and give it a ``name``.

    A document that assignments change is renamed after them unless they or ``name`` do, so that it cannot be mistaken for its
    base.
    """
    if name is not None:
        named = varied(document, assignments)
        marks = {**named.marks, ("name",): Mark.of_option("name", name)}
        return Document({**named.data, "name": name}, marks, named.key_marks)
    if not assignments:
        return document
    changed, overrides = unclaimed(document), []
    for text in assignments:
        overrides.append(parse_assignment(text))
        changed = merge(changed, overrides[-1], held_by_new_kind)
    changed = without_abandoned_blocks(changed, overrides)
    describe(changed, document, overrides)
    if changed.data.get("name") == document.data.get("name"):
        changed.data["name"] = _variant_name(str(document.data.get("name")), assignments)
    return changed


def _variant_name(base: str, assignments: Sequence[str]) -> str:
    """The base and the assignments, or their number and a digest where that is longer than :data:`MAX_NAME`."""
    name = "+".join([base, *(text.replace(" ", "") for text in assignments)])
    if len(name) > MAX_NAME:
        import hashlib  # loads a library, for long names alone

        digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:6]
        end = f"+{len(assignments)}-change{'s' if len(assignments) > 1 else ''}-{digest}"
        name = f"{base[: MAX_NAME - len(end)]}{end}"
    return "".join(letter if letter.isalnum() or letter in "._+=,@-" else "_" for letter in name)
