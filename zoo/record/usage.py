"""A program that loads an export in its client, to copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """A program in a ``language``, to be run in the export's directory, the packages that it needs, and a ``note`` about it."""

    language: str
    code: str
    packages: Sequence[str]
    note: str = ""
