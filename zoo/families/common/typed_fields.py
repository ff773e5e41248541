"""The fields of a mapping, read by name and type."""

from __future__ import annotations

import builtins
import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

from specs.base.errors import shorten
from specs.base.suggest import suggestion
from specs.language.scalars import is_huge, resolve
from specs.model.stack import MAX_LAYERS
from zoo.families.common.config_errors import ConfigError, printable

Value = TypeVar("Value")

REQUIRED: Any = object()
"""The default of a required field."""


class TypedFields:
    """The fields of a mapping at a ``path`` of a config; ``where`` is the name of its file.

    Every requested field counts as read. Except in :meth:`null` and :meth:`bool`, null means absent. A method with several names
    reads a field that has been renamed. All methods raise :class:`zoo.families.common.config_errors.ConfigError`.
    """

    def __init__(self, data: Mapping[str, Any], where: str, path: str) -> None:
        self.data, self.where, self.path = data, where, path
        self._read: set[str] = set()
        self._names: set[tuple[str, ...]] = set()

    def refuse(self, field: str, rule: str, remedy: str = "") -> NoReturn:
        """Raise an error with the field, the rule, the value and the remedy."""
        value = f"\n  value: {shorten(self.data[field])}" if field in self.data else ""
        raise ConfigError(
            f"{self.where}: {self.path}{printable(field)}: {rule}{value}"
            + (f"\n  {remedy}" if remedy else "")
        )

    def refuse_entries(self, field: str, layers: builtins.int) -> NoReturn:
        """Raise an error for a list that must have an entry for each layer."""
        self.refuse(
            field,
            f"must have an entry for each of the {layers} layers",
            "Add or delete entries, or correct the number of layers.",
        )

    def has(self, name: str) -> bool:
        """Return whether a field is present and not null."""
        return self.data.get(name) is not None

    def null(self, name: str) -> bool:
        """Return whether a field is present and null, where that differs from an absent field."""
        return name in self.data and self.data[name] is None

    def stated(self, *names: str) -> str:
        """Return the name of a field, of several names, that the config states, or else the first."""
        return next((name for name in names if self.has(name)), names[0])

    def any(self, *names: str) -> Any:
        """Return the value of a field unchecked, or None; refuse names of one field that state different values."""
        self._read.update(names)
        self._names.add(names)
        aliases = [name for name in names if self.has(name)]
        for other in aliases[1:]:
            if self.data[other] != self.data[aliases[0]]:
                rule = f"must equal {aliases[0]}, another name of the field, which is {shorten(self.data[aliases[0]])}"
                self.refuse(other, rule, "Delete the name whose value is wrong.")
        return self.data[aliases[0]] if aliases else None

    def _typed(
        self, names: tuple[str, ...], types: tuple[type, ...], what: str, default: Value
    ) -> Any | Value:
        value = self.any(*names)
        if value is None:
            if default is REQUIRED:
                self.refuse(names[0], "is required")
            return default
        rule = "" if type(value) in types else f"must be {what}"
        if isinstance(value, float) and not math.isfinite(value):
            rule = f"must be {what}"
        elif isinstance(value, int) and abs(value) >= 2**63:
            rule = "must fit in 64 bits"
        if rule:
            self.refuse(self.stated(*names), rule, _as_typed(value, types, default))
        return value

    def int(self, *names: str, default: Any = None) -> Any:
        """Return a whole number."""
        return self._typed(names, (int,), "a whole number", default)

    def layers(self, *names: str, default: Any = None) -> Any:
        """Return a number of layers, which is limited before anything is allocated per layer."""
        value = self.int(*names, default=default)
        if value is not None and not 0 <= value <= MAX_LAYERS:
            rule = "must be 1 or more" if value < 0 else f"must be at most {MAX_LAYERS:,}"
            self.refuse(self.stated(*names), rule)
        return value

    def float(self, *names: str, default: Any = None) -> Any:
        """Return a number."""
        value = self._typed(names, (int, float), "a number", default)
        return value if value is None else float(value)

    def bool(self, *names: str, default: Any = None, null: builtins.bool = False) -> Any:
        """Return a boolean. A stated null is false, as Python reads it, or ``null`` in references that compare with false."""
        has_null = any(map(self.null, names))
        return self._typed(names, (bool,), "true or false", null if has_null else default)

    def text(self, *names: str, default: Any = None) -> Any:
        """Return a string."""
        return self._typed(names, (str,), "a string", default)

    def list(self, *names: str, default: Any = None) -> Any:
        """Return a list."""
        return self._typed(names, (list,), "a list", default)

    def choice(self, name: str, values: Mapping[str, Value], default: str | None = None) -> Value:
        """Return the value that a word stands for; refuse unknown words with a suggestion."""
        word = self.text(name, default=REQUIRED if default is None else default)
        if word not in values:
            self.refuse(name, "is not supported", suggestion(word, values))
        return values[word]


def _as_typed(value: object, types: tuple[type, ...], default: object) -> str:
    """Return the remedy for a value of another type than the field's."""
    plain = resolve(value) if isinstance(value, str) and not is_huge(value) else None
    if type(plain) in types and isinstance(plain, int | float) and abs(plain) < 2**63:
        return f"Write it without quotes: {json.dumps(plain)}."
    if int in types and isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return f"Use {int(value)}."
    return (
        "Correct the field." if default is REQUIRED else "Correct the field, or delete it to use its default."
    )
