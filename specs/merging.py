"""Laying one document over another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specs.document import MAX_NODES, TYPES, Document, OnNewKind
from specs.errors import MISSING, Mark, Problem, SpecError, SpecPath, path_text


class _Merge:
    """Lays one document over another, walking both together and carrying the marks of what is kept."""

    def __init__(self, base: Document, override: Document, held: OnNewKind, most: int) -> None:
        self.base, self.override, self.held, self.most = base, override, held, most
        self.marks: dict[SpecPath, Mark] = {}
        self.key_marks: dict[SpecPath, Mark] = {}
        self.nodes = 0

    def document(self) -> Document:
        return Document(self.node((), self.base.data, self.override.data), self.marks, self.key_marks)

    def keep(self, origin: Document, path: SpecPath) -> None:
        self.nodes += 1
        if self.nodes > self.most:
            rule = f"a spec must have at most {self.most} values, with what it extends and its named blocks written out"
            remedy = "Use fewer or smaller named blocks."
            raise SpecError([Problem(rule, path, MISSING, remedy, self.override.mark_of(()))])
        if path in origin.marks:
            self.marks[path] = origin.marks[path]
        if path in origin.key_marks:
            self.key_marks[path] = origin.key_marks[path]

    def take(self, origin: Document, path: SpecPath, value: Any) -> Any:
        """A copy of a value, with its marks."""
        self.keep(origin, path)
        if isinstance(value, dict):
            return {key: self.take(origin, (*path, key), child) for key, child in value.items()}
        if isinstance(value, list):
            return [self.take(origin, (*path, index), child) for index, child in enumerate(value)]
        return value

    def node(self, path: SpecPath, below: Any, above: Any) -> Any:
        if not isinstance(above, dict):
            return self.take(self.override, path, above)
        if any(isinstance(key, int) for key in above):
            return self.elements(path, below, above)
        kept = self.kept(path, below, above)
        # An assignment only passes through the mappings on its way: they stay where they were written.
        mark = self.override.marks.get(path)
        passed = kept is below and (mark is None or mark.line is None)
        self.keep(self.base if passed else self.override, path)
        merged = {}
        for key in {**kept, **above}:
            here = (*path, key)
            if key in above:
                merged[key] = self.node(here, kept.get(key, MISSING), above[key])
            else:
                merged[key] = self.take(self.base, here, kept[key])
        return merged

    def kept(self, path: SpecPath, below: Any, above: Mapping[str, Any]) -> Mapping[str, Any]:
        """What of the base stays under an override: all of it, unless the override changes its kind."""
        if not isinstance(below, dict):
            return {}
        old, new = below.get("kind"), above.get("kind")
        if not isinstance(old, str | None) or not isinstance(new, str) or old == new:
            return below
        return self.held(below, new)

    def elements(self, path: SpecPath, below: Any, above: Mapping[int, Any]) -> list[Any]:
        """An override by index: `--set layers[0].repeat=3`."""
        name = path_text(path) or "the spec"
        for index in above:
            mark = self.override.mark_of((*path, index))
            if not isinstance(below, list):
                what = "not there" if below is MISSING else TYPES[type(below)]
                rule = f"an index must pick an element of a list, and {name} is {what}"
                raise SpecError([Problem(rule, path, below, f"assign the whole of {name}", mark)])
            if not 0 <= index < len(below):
                valid = f"use an index from 0 to {len(below) - 1}" if below else f"assign the whole of {name}"
                rule = f"an index must be within the {len(below)} elements of {name}"
                raise SpecError([Problem(rule, (*path, index), MISSING, valid, mark)])
        self.keep(self.base, path)
        items = []
        for index, item in enumerate(below):
            here = (*path, index)
            chosen = index in above
            items.append(self.node(here, item, above[index]) if chosen else self.take(self.base, here, item))
        return items


def merge(base: Document, override: Document, held: OnNewKind, most: int = MAX_NODES) -> Document:
    """Lay an override over a base: mappings merge key by key; lists, scalars and null replace what was there.

    Where the override gives a mapping another `kind`, the base keeps only the entries that `held` says still hold.
    Every value keeps the mark of where it came from; a merged mapping has the override's, unless that is a
    `--set` which only passed through. An integer key, as made by `parse_assignment`, picks an element of a list in
    the base. Raises `SpecError` where there is no such element, and where more than `most` values come out.
    """
    return _Merge(base, override, held, most).document()
