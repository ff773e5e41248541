"""The rules that a config breaks, with the fields of the config in place of the spec's."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from specs.base.errors import MISSING, Mark, Problem, SpecError, SpecPath, path_text, shorten
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError
from zoo.families.common.template import Data

Documents = Callable[[Config], Data]
"""Returns the whole spec of a config as plain data."""


class StatedField(NamedTuple):
    """A field by the path of its name, and its value; missing where the config leaves a default."""

    path: SpecPath
    value: object = MISSING


def broken_rules(error: SpecError, config: Config, document: Documents) -> ConfigError:
    """Return the error of a config whose spec breaks rules.

    The fields behind a value of the spec are those that change it: the config is read again with other numbers in each.
    """
    before, keys = document(config), set[SpecPath]()
    for problem in error.problems:
        keys |= {problem.path, *_others(problem, before).values()}
    sources = _sources(keys, before, config, document)
    translated = [_in_fields(problem, before, sources, config.where) for problem in error.problems]
    in_fields = [problem for problem in translated if problem]
    left = [problem for problem, own in zip(error.problems, translated, strict=True) if own is None]
    lines = [SpecError(dict.fromkeys(in_fields)).text] if in_fields else []
    if left:
        lines += [f"{config.where} describes a model that breaks a rule", SpecError(left).text]
    return ConfigError("\n".join(lines))


def divisor_of_zero(config: Config, read: Documents) -> ConfigError:
    """Return the error of a config that divides by zero, or overflows: its fields with which it does not."""
    for field, _ in _probes(config):
        for value in (1, 64, 1000):
            try:
                read(config.with_field(field.path, value))
            except (ConfigError, ArithmeticError):
                continue
            if field.value is not MISSING:
                problem = Problem(
                    "is out of range: other sizes follow from it by division or by powers",
                    field.path,
                    field.value,
                    "Correct the field, or delete it to use its default.",
                    Mark(config.where),
                )
                return ConfigError(SpecError([problem]).text)
    return ConfigError(
        f"{config.where} has sizes that lead to a division by zero\n  Correct the fields that are 0."
    )


def _in_fields(
    problem: Problem, data: Data, sources: Mapping[SpecPath, Sequence[StatedField]], where: str
) -> Problem | None:
    """Return a problem in a config's fields; None where no field changes the value."""
    fields, rule = sources[problem.path], problem.rule
    if not fields:
        return None
    for word, path in _others(problem, data).items():
        if len(sources[path]) == 1 and sources[path][0].value in (_at(data, path), MISSING):
            rule = rule.replace(f"{word}, which is", f"{path_text(sources[path][0].path)}, which is")
    if len(fields) == 1 and fields[0].value in (problem.value, MISSING):
        return Problem(rule, fields[0].path, problem.value, problem.remedy, Mark(where))
    names = " and ".join(path_text(field.path) for field in fields)
    values = " and ".join(
        f"{path_text(field.path)} {shorten(field.value)}" for field in fields if field.value is not MISSING
    )
    remedy = "\n".join(filter(None, [values and f"It follows from {values}.", problem.remedy]))
    return Problem(f"{names}: {path_text(problem.path)} {rule}", (), problem.value, remedy, Mark(where))


def _others(problem: Problem, data: Data) -> dict[str, SpecPath]:
    """Return the paths of the keys around a value whose values a rule states."""
    others: dict[str, SpecPath] = {}
    for word, value in re.findall(r"([a-z_]+), which is (\S+)", problem.rule):
        above = ((*problem.path[:end], word) for end in reversed(range(len(problem.path))))
        path = next((path for path in above if str(_at(data, path)) == value), None)
        if path is not None:
            others[word] = path
    return others


def _sources(
    paths: Collection[SpecPath], before: Data, config: Config, document: Documents
) -> dict[SpecPath, list[StatedField]]:
    """Return the fields that change the number at each path."""
    numbers = {path: value for path in paths if _is_number(value := _at(before, path))}
    sources: dict[SpecPath, list[StatedField]] = {path: [] for path in paths}
    for field, values in _probes(config):
        changed = set[SpecPath]()
        for value in values:
            try:
                after = document(config.with_field(field.path, value))
            except (ConfigError, ArithmeticError):
                continue
            others = ((path, _at(after, path)) for path in numbers)
            changed |= {path for path, other in others if _is_number(other) and other != numbers[path]}
        for path in changed:
            sources[path].append(field)
    return sources


def _probes(config: Config) -> Iterator[tuple[StatedField, tuple[int | float, ...]]]:
    """Yield the fields that may hold numbers, each with other values."""
    for path, value in _leaves(config.data):
        if _is_number(value):
            yield (
                StatedField(path, value),
                (value + 1, 2 * value or 4, (value + 0.5) / 2)[: 2 + isinstance(value, float)],
            )
    for path in sorted(config.absent):
        yield StatedField(path), (3,)


def _leaves(data: Mapping[str, Any], path: SpecPath = ()) -> Iterable[tuple[SpecPath, Any]]:
    for name, value in data.items():
        inner = value if isinstance(value, dict) else {}
        yield from _leaves(inner, (*path, name)) if inner else [((*path, name), value)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _at(data: Any, path: SpecPath) -> Any:
    for key in path:
        inside = key in data if isinstance(data, dict) else isinstance(data, list) and key in range(len(data))
        if not inside:
            return MISSING
        data = data[key]
    return data
