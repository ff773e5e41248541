"""From a preset's name or a file to a model: `extends`, `--set` and named blocks resolved, then validated."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from specs.assignment import assign
from specs.catalog import PRESETS, preset_names
from specs.document import Document
from specs.errors import Mark, Problem, SpecError, SpecPath
from specs.merging import merge
from specs.model import Model
from specs.reading import read_file
from specs.registry import keys_of_kind
from specs.suggest import did_you_mean
from specs.validation import validate


def load(reference: str | os.PathLike[str], assignments: Sequence[str] = ()) -> Model:
    """The model of a preset's name or a YAML file, with ``path=value`` assignments laid over it in order.

    Raises :class:`SpecError` with every problem found.
    """
    return validate(load_document(reference, assignments))


def load_document(reference: str | os.PathLike[str], assignments: Sequence[str] = ()) -> Document:
    """The resolved document of a spec, not yet validated."""
    return with_named_blocks(varied(read(reference), assignments))


def read(reference: str | os.PathLike[str]) -> Document:
    """The document of a preset's name or a YAML file laid over what it extends: what assignments change."""
    return _extended(_locate(os.fspath(reference), Path(), None), ())


def _locate(reference: str, beside: Path, mark: Mark | None) -> Path:
    """The file of a reference: a preset's name, or a path relative to ``beside``."""
    preset = PRESETS / f"{reference}.yaml"
    if "/" not in reference and os.sep not in reference and os.path.isfile(preset):
        return preset
    path, place = beside / reference, () if mark is None else ("extends",)
    is_path = reference.endswith((".yaml", ".yml")) or os.sep in reference
    if os.path.isfile(path) or (mark is None and reference and (is_path or os.path.exists(path))):
        return path
    remedy = f"{did_you_mean(reference, preset_names())}\nor give the path of a YAML file; `zoo list` shows the presets"
    if mark is not None and is_path:
        remedy = "paths are relative to this file; `zoo list` shows the presets"
    raise SpecError([Problem("must be a preset or a file", place, reference, remedy, mark)])


def _extended(path: Path, chain: tuple[Path, ...]) -> Document:
    """A file's document laid over what it extends.  What a base counts to and is said to be holds of it alone."""
    document = read_file(path)
    if "extends" not in document.data:
        return document
    mark, reference = document.mark_of(("extends",)), document.data["extends"]
    if not isinstance(reference, str):
        rule = "must be the name of a preset or the path of a file"
        raise SpecError([Problem(rule, ("extends",), reference, "such as extends: bert-base", mark)])
    base = _locate(reference, path.parent, mark)
    chain = (*chain, path.resolve())
    if base.resolve() in chain:
        loop = " -> ".join(step.name for step in (*chain, base))
        rule, remedy = (
            f"must not lead back to itself: {loop}",
            "extend a preset, or a file that extends none of these",
        )
        raise SpecError([Problem(rule, ("extends",), reference, remedy, mark)])
    inherited = _without(_without(_extended(base, chain), "expect"), "summary")
    return merge(inherited, _without(document, "extends"), _keys)


def varied(document: Document, assignments: Sequence[str]) -> Document:
    """A document with assignments laid over it, renamed after them, so that a variant never passes for its base."""
    if not assignments:
        return document
    changed = reduce(lambda base, text: assign(base, text, _keys), assignments, _without(document, "expect"))
    if changed.data.get("name") == document.data.get("name"):
        name = "+".join([str(document.data.get("name")), *(text.replace(" ", "") for text in assignments)])
        readable = "".join(letter if letter.isalnum() or letter in "._+=,@-" else "_" for letter in name)
        changed.data["name"] = readable[:200]
    return changed


def with_named_blocks(document: Document) -> Document:
    """Each of the stacks' named blocks laid over their ``block``, so that it says only what differs."""
    return reduce(_with_blocks_of, ("encoder", "decoder"), document)


def _with_blocks_of(document: Document, stack: str) -> Document:
    layers = document.data.get(stack)
    if not isinstance(layers, dict) or not isinstance(layers.get("blocks"), dict):
        return document
    base = _part(document, (stack, "block"))
    for name in layers["blocks"]:
        path = (stack, "blocks", name)
        variant = _part(document, path)
        if base is not None and variant is not None:
            document = _with_part(document, path, merge(base, variant, _keys))
    return document


def _keys(path: SpecPath, kind: str, merged: object) -> frozenset[str] | None:
    return keys_of_kind(kind)


def _without(document: Document, key: str) -> Document:
    return Document({k: v for k, v in document.data.items() if k != key}, document.marks, document.key_marks)


def _part(document: Document, path: SpecPath) -> Document | None:
    """The mapping at a path as a document of its own, or None where something else stands there."""
    data: object = document.data
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    if not isinstance(data, dict):
        return None

    def below(marks: object) -> Iterator[tuple[SpecPath, Mark]]:
        assert isinstance(marks, dict)
        return ((place[len(path) :], mark) for place, mark in marks.items() if place[: len(path)] == path)

    return Document(data, dict(below(document.marks)), dict(below(document.key_marks)))


def _with_part(document: Document, path: SpecPath, part: Document) -> Document:
    """A copy of a document with another mapping at a path."""
    data = dict(document.data)
    inner: Any = data
    for key in path[:-1]:
        inner[key] = dict(inner[key])
        inner = inner[key]
    inner[path[-1]] = part.data
    marks = {**document.marks, **{(*path, *place): mark for place, mark in part.marks.items()}}
    key_marks = {**document.key_marks, **{(*path, *place): mark for place, mark in part.key_marks.items()}}
    return Document(data, marks, key_marks)
