"""The named blocks of a stack, each merged with the stack's ``block``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from typing import Any

from specs.base.errors import Mark, SpecPath
from specs.base.registry import held_by_new_kind
from specs.language.document import MAX_RESOLVED, Document
from specs.language.merging import merge
from specs.model.stack import STACKS


def with_named_blocks(document: Document) -> Document:
    """The document with every named block written out in full. Raises :class:`SpecError` if it gets too large."""
    return reduce(_with_blocks_of, STACKS, document)


def _with_blocks_of(document: Document, stack: str) -> Document:
    layers = document.data.get(stack)
    if not isinstance(layers, dict) or not isinstance(layers.get("blocks"), dict):
        return document
    if not isinstance(layers.get("block"), dict):
        return document
    block, blocks = _part(document, (stack, "block")), _part(document, (stack, "blocks"))
    names = [name for name, variant in blocks.data.items() if isinstance(variant, dict)]
    merged = merge(_repeated(block, names), blocks, held_by_new_kind, MAX_RESOLVED)
    data = {**document.data, stack: {**layers, "blocks": merged.data}}
    marks, key_marks = (
        {**old, **{(stack, "blocks", *path): mark for path, mark in new.items()}}
        for old, new in ((document.marks, merged.marks), (document.key_marks, merged.key_marks))
    )
    return Document(data, marks, key_marks)


def _part(document: Document, path: tuple[str, str]) -> Document:
    """The mapping at a path, as a separate document."""
    data = document.data[path[0]][path[1]]

    def below(marks: Mapping[SpecPath, Mark]) -> dict[SpecPath, Mark]:
        return {marked[2:]: mark for marked, mark in marks.items() if marked[:2] == path}

    return Document(data, below(document.marks), below(document.key_marks))


def _repeated(part: Document, names: Collection[str]) -> Document:
    """A document with copies of a part under several names."""

    def under_each(marks: Mapping[SpecPath, Mark]) -> dict[SpecPath, Mark]:
        return {(name, *path): mark for name in names for path, mark in marks.items() if path}

    return Document(dict.fromkeys(names, part.data), under_each(part.marks), under_each(part.key_marks))


def without_abandoned_blocks(document: Document, overrides: Collection[Document]) -> Document:
    """The document without the inherited blocks that no layer uses after an override of ``layers``.

    A block that the override itself defines is kept, so that the rules report it if unused.
    """
    data = dict(document.data)
    for stack in STACKS:
        mappings = [_mapping(override.data.get(stack)) for override in overrides]
        layers, blocks = data.get(stack), _mapping(_mapping(data.get(stack)).get("blocks"))
        if not blocks or not any("layers" in mapping for mapping in mappings):
            continue
        kept = {
            *_used(_mapping(layers).get("layers")),
            *(k for mapping in mappings for k in _mapping(mapping.get("blocks"))),
        }
        data[stack] = {**_mapping(layers), "blocks": {k: v for k, v in blocks.items() if k in kept}}
    return Document(data, document.marks, document.key_marks)


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def _used(layers: Any) -> Iterator[str]:
    """The names of the blocks used by the entries of ``layers``."""
    for entry in layers if isinstance(layers, list) else ():
        run = _mapping(entry)
        if isinstance(name := run.get("use"), str):
            yield name
        yield from _used(run.get("pattern"))
