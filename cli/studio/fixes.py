"""Fixes of a problem as edits of the text.

Candidates are read from the remedy, tried, and kept if the problem is gone and no other has come: a button that is shown works.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.studio.start_values import start_values
from cli.studio.typed_spec import TypedSpec
from specs.base import registry
from specs.base.errors import MISSING, Problem, SpecError, SpecPath, path_text
from specs.language.editing import renamed, with_value, without
from specs.language.scalars import resolve
from specs.language.validation import REQUIRED
from specs.language.writing import flow
from specs.model.model import Model

_MOST = 6
"""The most fixes that are offered for one problem."""

_UNKNOWN, _NO_KIND, _NO_MAPPING = (
    "is not a known key",
    "must be a registered",
    "must be a mapping with a `kind`",
)
"""The rules, or their beginnings, that an unknown key, an unknown kind and a bare word violate."""

_QUOTED = re.compile(r"'([^']+)'")
_PAIR = re.compile(r"\b([a-z_]+(?:\.[a-z_]+)*): (\{[^}]*\}|[\w.+-]+)")
_PART = re.compile(r"(?:Did you mean|such as) (\{kind: (?:[^{}]|\{[^{}]*\})*\})")
_WORD = re.compile(r"[\w.+-]*\w")
_GRAMMAR = {
    "Use",
    "Write",
    "Set",
    "Add",
    "Choose",
    "or",
    "and",
    "a",
    "an",
    "the",
    "to",
    "of",
    "from",
    "more",
    "less",
    "divisor",
}
_KEYS = (*Model.model_fields,)


@dataclass(frozen=True)
class Fix:
    """An edit that makes a problem go away: what it does, in a few words, and the text after it."""

    label: str
    text: str

    def as_dict(self) -> dict[str, str]:
        """As JSON data."""
        return {"label": self.label, "text": self.text}


def fixes(text: str, problem: Problem, problems: Sequence[Problem], folder: Path, until: float) -> list[Fix]:
    """The fixes of one of the problems of a text that are found until a time, the likeliest first."""
    working: list[Fix] = []
    for label, edit in _candidates(text, problem, problems):
        try:
            edited = edit()
        except (SpecError, LookupError, ValueError, TypeError):
            continue
        if (
            edited != text
            and all(fix.text != edited for fix in working)
            and _helps(edited, problem, problems, folder)
        ):
            working.append(Fix(label, edited))
        if len(working) == _MOST or time.monotonic() > until:
            break
    return working


def _helps(edited: str, problem: Problem, problems: Sequence[Problem], folder: Path) -> bool:
    """Whether a problem is gone, and no other has come in its place.

    A key that is read at last may call for others: rules between keys are checked once every key is known. A kind that
    is meant, or a bare word that becomes a part, may call for the part's keys.
    """
    try:
        TypedSpec.read(edited, folder)
    except SpecError as error:
        left = {(other.path, other.rule) for other in error.problems}
        new = left - {(other.path, other.rule) for other in problems}
        if (problem.path, problem.rule) in left:
            return False
        meant = problem.rule.startswith(_NO_KIND) and "Did you mean" in problem.remedy
        if meant or problem.rule.startswith(_NO_MAPPING):
            part = problem.path[:-1] if problem.path[-1] == "kind" else problem.path
            return all(rule.startswith(REQUIRED) and path[: len(part)] == part for path, rule in new)
        if problem.rule not in (REQUIRED, _UNKNOWN):
            return not new
        depth = len(problem.path)
        return not any(
            rule == _UNKNOWN or rule.startswith(_NO_KIND) or path[:depth] == problem.path
            for path, rule in new
        )
    return True


Candidate = tuple[str, Callable[[], str]]


def _candidates(text: str, problem: Problem, problems: Sequence[Problem]) -> Iterator[Candidate]:
    path, remedy = problem.path, problem.remedy
    if "must not be indented by a tab" in problem.rule:
        for spaces in ("", "  ", "    "):
            yield "Indent with spaces", _replacing(text, "\t", spaces)
    if not path:
        return
    if problem.rule == REQUIRED:
        yield from _moved(text, path, problems)
        for value in start_values(text, path):
            yield f"Add {path[-1]}: {flow(value)}", _setting(text, path, value)
    if part := _PART.search(remedy):
        yield from _with_moved(text, path, part[1], problems)
        yield from _whole_part(text, path, part[1])
        return
    if "Did you mean" in remedy:
        for word in _QUOTED.findall(remedy):
            yield from _meant(text, problem, word)
    removed = re.findall(r"\b[Rr]emove (?:the )?([a-z_]+)\b", remedy)
    if problem.rule == _UNKNOWN and path[-1] in removed:  # more often left over than meant
        yield f"Remove {path[-1]}", _removing(text, path)
    for key, value in _PAIR.findall(remedy):
        if key in _GRAMMAR:
            continue
        yield from _pair(text, path, key, value)
    for clause in re.split(r"[;.] |, or (?=set|remove)|\.$", remedy):
        if clause.startswith(("Use", "Write", "Choose from", "Set", "Add")):
            yield from _values(text, problem, clause)
    if re.search(r"\b[Rr]emove (it|them)\b", remedy) or (
        problem.value is MISSING and problem.rule != REQUIRED
    ):
        yield f"Remove {path[-1]}", lambda: without(text, path)
    rivals = (
        re.findall(r"\b(?:beside|or) (?:the )?([a-z_]+)\b", problem.rule) if "Remove one" in remedy else []
    )
    if rivals:
        yield f"Remove {path[-1]}", lambda: without(text, path)
    for key in [*removed, *rivals]:
        yield f"Remove {key}", _removing(text, (*path[:-1], key))


def _moved(text: str, path: SpecPath, problems: Sequence[Problem]) -> Iterator[Candidate]:
    """A required part made of the unknown keys beside it, such as the expert of a mixture."""
    unknown = [other.path for other in problems if other.rule == _UNKNOWN and other.path[:-1] == path[:-1]]
    values = (value for value in start_values(text, path) if isinstance(value, dict))
    inner_kind = next((value["kind"] for value in values if "kind" in value), None)
    slot = next((slot for slot in registry.slots() if inner_kind in registry.kinds(slot)), None)
    for kind in registry.kinds_with(slot, str(unknown[0][-1])) if unknown else ():
        part = {"kind": kind} | {str(other[-1]): _value_at(text, other) for other in unknown}

        def edit(part: dict[str, Any] = part) -> str:
            edited = text
            for other in unknown:
                edited = without(edited, other)
            return with_value(edited, path, part, _KEYS)

        yield (
            f"Move {' and '.join(str(other[-1]) for other in unknown)} into {path[-1]}: {{kind: {kind}}}",
            edit,
        )


def _with_moved(text: str, path: SpecPath, written: str, problems: Sequence[Problem]) -> Iterator[Candidate]:
    """A new kind with a required part made of the keys that the kind does not have."""
    for other in problems:
        if path[-1] == "kind" and other.rule == REQUIRED and other.path[:-1] == path[:-1]:
            for moving, moved in _moved(text, other.path, problems):
                for using, edit in _whole_part(moved(), path, written):
                    yield f"{using}; {moving[0].lower()}{moving[1:]}", edit


def _setting(text: str, path: SpecPath, value: Any) -> Callable[[], str]:
    return lambda: with_value(text, path, value, _KEYS)


def _replacing(text: str, old: str, new: str) -> Callable[[], str]:
    return lambda: text.replace(old, new)


def _removing(text: str, path: SpecPath) -> Callable[[], str]:
    return lambda: without(text, path)


def _meant(text: str, problem: Problem, word: str) -> Iterator[Candidate]:
    """The word in the place of an unknown key, or of a value."""
    path = problem.path
    if problem.value is not MISSING:
        yield f"Use {word}", _setting(text, path, word)
        return
    if "." not in word:
        yield f"Rename to {word}", lambda: renamed(text, path, word)
        return
    goal: SpecPath = tuple(word.split("."))
    yield f"Move to {word}", lambda: with_value(without(text, path), goal, _value_at(text, path), _KEYS)


def _whole_part(text: str, path: SpecPath, written: str) -> Iterator[Candidate]:
    """All keys of a part that the remedy writes, at the part whose kind or value is wrong; none if they are no YAML."""
    from specs.language.reading import read_text

    try:
        keys: dict[str, Any] = read_text(written, "").data
    except SpecError:  # in the words of a plugin
        return
    part = path[:-1] if path[-1] in keys else path

    def edit() -> str:
        edited = text
        for key, value in keys.items():
            edited = with_value(edited, (*part, key), value, _KEYS)
        return edited

    further = "".join(f", {key}: {flow(value)}" for key, value in keys.items() if key != "kind")
    yield f"Use {keys['kind']}{further}", edit


def _value_at(text: str, path: SpecPath) -> Any:
    from specs.language.reading import read_text

    value: Any = read_text(text, "").data
    for part in path:
        value = value[part]
    return value


def _pair(text: str, path: SpecPath, key: str, value: str) -> Iterator[Candidate]:
    """A key with its value, beside the problem or nearer to the root."""
    from specs.language.reading import read_text

    try:
        data = read_text(f"value: {value}", "").data["value"]
    except SpecError:
        return
    for depth in range(len(path) - 1, -1, -1):
        goal = (*path[:depth], *key.split("."))
        yield f"Set {path_text(goal[-2:])}: {value}", _setting(text, goal, data)


def _values(text: str, problem: Problem, clause: str) -> Iterator[Candidate]:
    """Each word of a clause as the value, or as the kind of the part; numbers near to the value first."""
    path, words = problem.path, _WORD.findall(clause.rpartition(":")[2])
    values = [(word, resolve(word)) for word in words if word not in _GRAMMAR]
    if isinstance(problem.value, int | float):
        near = problem.value
        values.sort(key=lambda pair: abs(pair[1] - near) if isinstance(pair[1], int | float) else math.inf)
    for word, value in values:
        if isinstance(value, str) and not re.fullmatch(r"[a-z][a-z0-9_-]*", word):
            continue
        yield f"Use {word}", _setting(text, path, value)
        if isinstance(value, str) and path[-1] != "kind":
            yield f"Use {word}", _setting(text, (*path, "kind"), value)
            if problem.value is None:
                yield f"Use {word}", _setting(text, (*path[:-1], "kind"), value)
