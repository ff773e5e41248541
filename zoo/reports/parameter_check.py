"""An expected parameter count next to the actual one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ParameterCheck:
    """An expected parameter count and the actual one; ``path`` is empty for the whole model.

    ``active``: whether it counts the parameters that process each token.
    """

    path: str
    expected: int
    built: int
    active: bool = False

    @property
    def met(self) -> bool:
        return self.expected == self.built

    @property
    def key(self) -> str:
        """The key of the spec that states the expected count."""
        if self.path:
            return f"expect.modules[{self.path}]"
        return "expect.active_parameters" if self.active else "expect.parameters"

    def __str__(self) -> str:
        of = "active per token: " if self.active else f"{self.path}: " if self.path else ""
        if self.met:
            return f"{of}expected {self.expected:,} = built {self.built:,}"
        difference = self.built - self.expected
        return f"{of}expected {self.expected:,}, but built {self.built:,} ({difference:+,})"

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "path": self.path,
            "active": self.active,
            "published": self.expected,
            "built": self.built,
            "met": self.met,
        }
