"""Specs as plain data with positions, and their bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from specs.errors import Mark, SpecPath

MAX_BYTES = 1_000_000
MAX_DEPTH = 64  # nested lists and mappings
MAX_NODES = 20_000  # values, each use of an alias counted in full; also of a spec laid over what it extends
MAX_RESOLVED = 200_000  # values, once every named block is written out
MAX_KEY = 100  # characters, so that every key fits what YAML allows on one line
MAX_DIGITS = 100

OnNewKind = Callable[[Mapping[str, Any], str], Mapping[str, Any]]
"""Returns the entries of a mapping that still hold when its ``kind`` becomes another."""

TYPES: dict[type, str] = {
    dict: "a mapping",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    type(None): "null",
}


@dataclass(frozen=True)
class Document:
    """Plain data (dict, list, str, int, float, bool, None) and where each part of it was written.

    `marks` has the position of the value at every path, `key_marks` that of the key which leads to it.
    """

    data: dict[str, Any]
    marks: Mapping[SpecPath, Mark] = field(default_factory=dict)
    key_marks: Mapping[SpecPath, Mark] = field(default_factory=dict)

    def mark_of(self, path: SpecPath) -> Mark | None:
        """Where the value at a path is, or else the nearest around it; None for data without positions."""
        return next((self.marks[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.marks), None)

    def key_mark_of(self, path: SpecPath) -> Mark | None:
        """Where the key at the end of a path is; for a list element or an absent key, as `mark_of`."""
        return self.key_marks.get(path) or self.mark_of(path)
