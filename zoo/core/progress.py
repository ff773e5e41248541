"""Progress reports of long work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """A step that takes time: its name, and bytes done of bytes in total (0 where not known)."""

    name: str
    done: int = 0
    total: int = 0


Progress = Callable[[Stage], None]
"""Called with every stage as it begins or goes on."""
