"""Errors of users: location, rule, value and remedy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

SpecPath = tuple[str | int, ...]
"""Path of a value in a spec: mapping keys and list indices from the root."""


class Missing(Enum):
    """The type of `MISSING`, which stands for "no value" where `None` is a value."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING

_WIDTH = 80
_LISTED = 10
_NAME = re.compile(r"[\w-]+")


def path_text(path: SpecPath) -> str:
    """A path in the notation of users, such as `decoder.layers[2].use`; keys other than plain names are quoted."""
    text = ""
    for part in path:
        if isinstance(part, str) and _NAME.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return text


def shorten(value: object) -> str:
    """The repr of a value, cut to 80 characters."""
    text = repr(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


_NAMED = re.compile("\x1f([a-z_]+)(=False)?\x1f")


def option_name(name: str, value: bool = True) -> str:
    """The name of an option in a message: a keyword in Python, a flag on the command line.

    ``value`` False stands for the option switched off.
    """
    return f"\x1f{name}\x1f" if value else f"\x1f{name}=False\x1f"


def with_keywords(text: str) -> str:
    """A message with options as Python keywords: ``max_kl``."""
    return _NAMED.sub(lambda match: match[1] + (match[2] or ""), text)


def with_flags(text: str) -> str:
    """A message with options as command-line flags: `--max-kl` for ``max_kl``."""
    return _NAMED.sub(lambda match: f"--{'no-' if match[2] else ''}{_flag(match[1])}", text)


def _flag(name: str) -> str:
    """The flag of an option; one that is repeated takes a single value each time."""
    names = {
        "engines": "engine",
        "adapters": "adapter",
        "architectures": "for",
        "family": "as",
        "assignments": "set",
    }
    return names.get(name, name.replace("_", "-"))


@dataclass(frozen=True)
class Mark:
    """A position in a file, with 1-based line and column, or an option with its value, as :meth:`of_option` makes it."""

    source: str
    line: int | None = None
    column: int | None = None

    @classmethod
    def of_option(cls, name: str, value: str) -> Mark:
        """An option with its value: `--set a=1` on the command line, ``assignments`` in Python."""
        return cls(f"{option_name(name)} {_printable(value)}")

    @property
    def text(self) -> str:
        """The place, with an option encoded by :func:`option_name`."""
        source = self.source if _NAMED.match(self.source) else _printable(self.source)
        return ":".join(str(part) for part in (source, self.line, self.column) if part is not None)

    def __str__(self) -> str:
        return with_keywords(self.text)


def _printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)


@dataclass(frozen=True)
class Problem:
    """One violated rule, with the path and value that violate it, a remedy, and the source position."""

    rule: str
    path: SpecPath = ()
    value: object = MISSING
    remedy: str = ""
    mark: Mark | None = None

    @property
    def path_text(self) -> str:
        """The spec path as text, such as `decoder.layers[2].use`; empty for the whole spec."""
        return path_text(self.path)

    def render(self) -> str:
        """The problem as text: `gpt2.yaml:12:14: decoder.heads: <rule>`, then value and remedy, indented; options are encoded
        by :func:`option_name`."""
        where = [self.mark.text] if self.mark else []
        lines = [": ".join([*where, *filter(None, [self.path_text]), self.rule])]
        if self.value is not MISSING:
            lines.append(f"  value: {shorten(self.value)}")
        return "\n".join(lines + [f"  {line}" for line in self.remedy.splitlines()])

    def as_dict(self, named: Callable[[str], str] = with_keywords) -> dict[str, Any]:
        """The problem as JSON data; a value other than a JSON scalar is replaced by its shortened repr.

        ``named`` names the options: :func:`with_keywords` or :func:`with_flags`.
        """
        mark = self.mark
        data: dict[str, Any] = {
            "source": named(mark.source) if mark else None,
            "line": mark.line if mark else None,
            "column": mark.column if mark else None,
            "path": self.path_text,
            "rule": named(self.rule),
            "remedy": named(self.remedy),
        }
        value = self.value
        if value is not MISSING:
            is_json = value is None or isinstance(value, str | int) or _is_finite(value)
            data["value"] = value if is_json else shorten(value)
        return data


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def reason_of(error: BaseException) -> str:
    """The first line of an error's message, or the name of its class where it has none: never empty."""
    return next(iter(str(error).strip().splitlines()), "").strip() or type(error).__name__


class UserError(Exception):
    """An error in the user's input, reported without a traceback; the command exits with status 2.

    ``text`` is the message with options encoded by :func:`option_name`.
    """

    @property
    def text(self) -> str:
        return super().__str__()

    def __str__(self) -> str:
        """The message with options as Python keywords."""
        return with_keywords(self.text)


class CombinedError(UserError):
    """Several errors, reported together."""

    def __init__(self, errors: Iterable[UserError]) -> None:
        self.errors: tuple[UserError, ...] = tuple(errors)
        assert self.errors, "CombinedError needs at least one error"
        super().__init__("\n".join(error.text for error in self.errors))


class SpecError(UserError):
    """A spec that violates one or more rules, listed in `problems`."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        assert self.problems, "a SpecError needs at least one problem"
        super().__init__(self.problems)

    @property
    def text(self) -> str:
        """The first problems as plain text, and the number of further ones."""
        shown = [problem.render() for problem in self.problems[:_LISTED]]
        if len(self.problems) > _LISTED:
            shown.append(f"... and {len(self.problems) - _LISTED:,} more problems")
        return "\n".join(shown)


class PluginError(UserError):
    """A plugin that cannot be loaded, or that registers an existing kind."""
