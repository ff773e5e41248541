"""The fields of a request, checked one by one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specs.base.errors import SpecPath
from specs.language.document import MAX_BYTES, MAX_DEPTH


class BadRequestError(Exception):
    """A request that the page never sends."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Fields:
    """The fields of the JSON object that a request sends."""

    data: dict[str, Any]

    @classmethod
    def of(cls, body: bytes) -> Fields:
        """Read a body.  Raises :class:`BadRequestError` for anything but a JSON object."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            raise BadRequestError("A request must be JSON.") from None
        if not isinstance(data, dict):
            raise BadRequestError("A request must be a JSON object.")
        return cls(data)

    def text(self, name: str, default: str | None = None) -> str:
        """A string of at most the bytes of a spec."""
        value = self.data.get(name, default)
        if not isinstance(value, str):
            raise BadRequestError(f"{name} must be a string.")
        if len(value) > MAX_BYTES:
            raise BadRequestError(f"{name} must have at most {MAX_BYTES:,} characters.", 413)
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise BadRequestError(f"{name} must be valid Unicode.")
        return value

    def whole(self, name: str, default: Any, least: int, most: int) -> Any:
        """A whole number within bounds, or the default."""
        value = self.data.get(name, default)
        if value is default:
            return default
        if type(value) is not int or not least <= value <= most:
            raise BadRequestError(f"{name} must be a whole number from {least:,} to {most:,}.")
        return value

    def number(self, name: str) -> float:
        """A finite number."""
        value: Any = self.data.get(name)
        if type(value) not in (int, float) or not abs(value) < 1e300:
            raise BadRequestError(f"{name} must be a number.")
        number: float = value
        return number

    def path(self, name: str) -> SpecPath:
        """A path in a spec: keys and indices."""
        value: Any = self.data.get(name)
        is_path = isinstance(value, list) and 0 < len(value) <= MAX_DEPTH
        if not is_path or not all(isinstance(part, str) or type(part) is int for part in value):
            raise BadRequestError(f"{name} must be a list of keys and indices.")
        return tuple(value)

    def plain(self, name: str) -> Any:
        """Any JSON value."""
        return self.data.get(name)

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of some strings; the first by default."""
        value = self.text(name, choices[0])
        if value not in choices:
            raise BadRequestError(f"{name} must be one of those that the page offers.")
        return value

    def texts(self, names: Sequence[str]) -> dict[str, str]:
        """The strings of those names that are stated."""
        return {name: self.text(name) for name in names if self.data.get(name) is not None}
