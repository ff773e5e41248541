"""Errors of configs, and the names of fields in them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from specs.base.errors import UserError, shorten


class ConfigError(UserError):
    """A config of an unknown family, or with a wrong or unsupported field; names the field."""


_LISTED = 10


class UnsupportedFieldsError(ConfigError):
    """Fields of the reference that are not supported; ``fields`` are their names."""

    def __init__(self, where: str, fields: Mapping[str, Any]) -> None:
        shown = [
            f"  {printable(name)}: {shorten(value)}"
            for name, value in itertools.islice(fields.items(), _LISTED)
        ]
        if len(fields) > _LISTED:
            shown.append(f"  ... and {len(fields) - _LISTED:,} more")
        super().__init__("\n".join([f"{where} has unsupported fields:", *shown]))
        self.fields = tuple(fields)


def listed(fields: Sequence[str]) -> str:
    """Return the first few fields as text, and the number of further ones."""
    more = f" and {len(fields) - _LISTED:,} more" if len(fields) > _LISTED else ""
    return ", ".join(map(printable, fields[:_LISTED])) + more


def printable(field: str) -> str:
    """Return the name of a field, quoted and shortened where it is not printable or too long."""
    return field if field.isprintable() and len(field) <= 80 else shorten(field)
