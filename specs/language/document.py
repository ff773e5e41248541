"""Specs as plain data with source positions, and their size limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from specs.base.errors import Mark, SpecPath

MAX_BYTES = 1_000_000
MAX_DEPTH = 64  # nested lists and mappings
MAX_NODES = 20_000  # values, with each use of an alias counted in full; also for a spec merged with its base
MAX_RESOLVED = 200_000  # values, with every named block written out
MAX_KEY = 100  # characters, below the limit of YAML for keys on one line
MAX_DIGITS = 100

OnNewKind = Callable[[Mapping[str, Any], str], Mapping[str, Any]]
"""Returns the entries of a mapping that remain valid when its ``kind`` changes."""

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
    """Plain data (dict, list, str, int, float, bool, None) and its source positions.

    `marks` maps every path to the position of its value, `key_marks` to the position of its key.
    """

    data: dict[str, Any]
    marks: Mapping[SpecPath, Mark] = field(default_factory=dict)
    key_marks: Mapping[SpecPath, Mark] = field(default_factory=dict)

    def mark_of(self, path: SpecPath) -> Mark | None:
        """The position of the value at a path or of its nearest parent; None for data without positions."""
        return next((self.marks[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.marks), None)

    def key_mark_of(self, path: SpecPath) -> Mark | None:
        """The position of the last key of a path; for a list element or an absent key, as `mark_of`."""
        return self.key_marks.get(path) or self.mark_of(path)
