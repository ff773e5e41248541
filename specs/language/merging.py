"""Merging of documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specs.base.errors import MISSING, Mark, Problem, SpecError, SpecPath, path_text
from specs.language.document import MAX_NODES, TYPES, Document, OnNewKind


class _Merge:
    """Merges two documents and keeps the marks of their values."""

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
            rule = f"a spec must have at most {self.most} values, including its base and its named blocks written out"
            remedy = "Use fewer or smaller named blocks."
            raise SpecError([Problem(rule, path, MISSING, remedy, self.override.mark_of(()))])
        if path in origin.marks:
            self.marks[path] = origin.marks[path]
        if path in origin.key_marks:
            self.key_marks[path] = origin.key_marks[path]

    def take(self, origin: Document, path: SpecPath, value: Any) -> Any:
        """Copy a value with its marks."""
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
        # An assignment keeps the positions of the mappings on its path.
        mark = self.override.marks.get(path)
        passed = kept is below and (mark is None or mark.line is None)
        self.keep(self.base if passed else self.override, path)
        merged = {}
        for key in {**kept, **above}:
            key_path = (*path, key)
            if key in above:
                merged[key] = self.node(key_path, kept.get(key, MISSING), above[key])
            else:
                merged[key] = self.take(self.base, key_path, kept[key])
        return merged

    def kept(self, path: SpecPath, below: Any, above: Mapping[str, Any]) -> Mapping[str, Any]:
        """The part of the base that an override keeps: everything, unless the override changes the kind."""
        if not isinstance(below, dict):
            return {}
        old, new = below.get("kind"), above.get("kind")
        if not isinstance(old, str | None) or not isinstance(new, str) or old == new:
            return below
        return self.held(below, new)

    def elements(self, path: SpecPath, below: Any, above: Mapping[int, Any]) -> list[Any]:
        """Apply an override by index, such as `layers[0].repeat=3`."""
        name = path_text(path) or "the spec"
        for index in above:
            mark = self.override.mark_of((*path, index))
            if not isinstance(below, list):
                what = "not set" if below is MISSING else TYPES[type(below)]
                rule = f"an index must select an element of a list, and {name} is {what}"
                remedy = f"Assign a value to {name} itself." if path else "Start the path with a key."
                raise SpecError([Problem(rule, path, below, remedy, mark)])
            if not 0 <= index < len(below):
                valid = (
                    f"Use an index from 0 to {len(below) - 1}."
                    if below
                    else f"Assign a value to {name} itself."
                )
                rule = f"an index must be in the range of {name}, which has {len(below)} elements"
                raise SpecError([Problem(rule, (*path, index), MISSING, valid, mark)])
        self.keep(self.base, path)
        items = []
        for index, item in enumerate(below):
            key_path = (*path, index)
            chosen = index in above
            items.append(
                self.node(key_path, item, above[index]) if chosen else self.take(self.base, key_path, item)
            )
        return items


def merge(base: Document, override: Document, held: OnNewKind, most: int = MAX_NODES) -> Document:
    """Merge an override into a base: mappings merge key by key; lists, scalars and null replace the base's value.

    If the override changes the `kind` of a mapping, the base keeps only the entries that `held` returns. Values keep their source
    marks; a merged mapping has the override's mark, except on the path of an assignment. An integer key, from
    `parse_assignment`, selects an element of a list in the base. Raises `SpecError` for an index out of range, and for more than
    `most` resulting values.
    """
    return _Merge(base, override, held, most).document()
