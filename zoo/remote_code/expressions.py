"""Expressions of Python as text, on as many lines as they need."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

WIDTH = 110


@dataclass(frozen=True)
class Group:
    """Items between brackets, on one line or on one each."""

    begin: str
    items: tuple[Expression, ...]
    end: str


@dataclass(frozen=True)
class Named:
    """An argument by its name."""

    name: str
    value: Expression


Expression = str | Group | Named


def call(function: str, /, *arguments: Expression, **named: Expression) -> Group:
    """The call of a function."""
    return Group(f"{function}(", (*arguments, *(Named(name, value) for name, value in named.items())), ")")


def formatted(expression: Expression, indent: int = 0, prefix: str = "", suffix: str = "") -> str:
    """An expression on one line if that is short enough, else with one line for each item."""
    if isinstance(expression, Named):
        return formatted(expression.value, indent, f"{prefix}{expression.name}=", suffix)
    line = f"{' ' * indent}{prefix}{flat(expression)}{suffix}"
    if len(line) <= WIDTH or isinstance(expression, str):
        return line
    if all(isinstance(item, str) and len(item) < 50 and " " not in item for item in expression.items):
        inner = textwrap.fill(
            ", ".join(map(str, expression.items)) + ",",
            WIDTH,
            initial_indent=" " * (indent + 4),
            subsequent_indent=" " * (indent + 4),
            break_long_words=False,
            break_on_hyphens=False,
        )
    else:
        inner = "\n".join(formatted(item, indent + 4, "", ",") for item in expression.items)
    begin = f"{' ' * indent}{prefix}{expression.begin}"
    return f"{begin}\n{inner}\n{' ' * indent}{expression.end}{suffix}"


def quoted(text: str) -> str:
    """A string as formatters write it."""
    made = repr(text)
    return f'"{made[1:-1]}"' if made[0] == "'" and '"' not in text else made


def flat(expression: Expression) -> str:
    if isinstance(expression, str):
        return expression
    if isinstance(expression, Named):
        return f"{expression.name}={flat(expression.value)}"
    inner = ", ".join(map(flat, expression.items))
    single = "," if expression.begin == "(" and len(expression.items) == 1 else ""
    return f"{expression.begin}{inner}{single}{expression.end}"


def repeated(items: list[Expression]) -> tuple[Expression, ...]:
    """Items with runs of equal ones as comprehensions."""
    grouped: list[Expression] = []
    index = 0
    while index < len(items):
        count = 1
        while index + count < len(items) and items[index + count] == items[index]:
            count += 1
        item = items[index]
        if count == 1:
            grouped.append(item)
        else:
            assert isinstance(item, Group)
            grouped.append(Group(f"*({item.begin}", item.items, f"{item.end} for _ in range({count}))"))
        index += count
    return tuple(grouped)
