"""Validation of documents: pydantic's errors as problems with file, line, column, rule, value and remedy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from specs.base.base import Spec
from specs.base.errors import MISSING, Problem, SpecError, SpecPath
from specs.base.kind_synonyms import written
from specs.base.suggest import boolean_remedy, suggestion
from specs.language.document import MAX_DIGITS, Document
from specs.language.scalars import resolve
from specs.language.synonyms import value_meant
from specs.language.unknown_key import remedy_for
from specs.model.model import Model
from specs.model.stack import LayerRun

REQUIRED = "is required"


def validate(document: Document) -> Model:
    """Validate a document. Raises :class:`SpecError` with every problem found."""
    try:
        return Model.model_validate(document.data)
    except ValidationError as error:
        raise SpecError(problems(error, document, Model)) from None


def problems(error: ValidationError, document: Document, root: type[Spec]) -> list[Problem]:
    """One problem per path in the document of a ``root``, in the order of the document's lines."""
    by_path: dict[SpecPath, Problem] = {}
    for line in error.errors(include_url=False):
        if line["type"] == "too_short" and len(line["input"]) >= line["ctx"]["min_length"]:
            continue  # its wrong items are reported one by one
        problem = _problem(line, document, root)
        earlier = by_path.get(problem.path)
        if earlier is not None and earlier.rule != problem.rule:  # the branches of a union
            rule = f"{earlier.rule}, or {problem.rule.removeprefix('must be ')}"
            remedy = earlier.remedy or problem.remedy
            problem = Problem(rule, problem.path, problem.value, remedy, problem.mark)
        by_path[problem.path] = problem
    kept = _once(by_path)
    wrong = {problem.path[:-1]: problem.mark for problem in kept if problem.path[-1:] == ("kind",)}

    def place(problem: Problem) -> tuple[int, int, bool]:
        """The place among others: keys that a part requires come after its wrong kind, which may be why they are required."""
        required = problem.rule == REQUIRED and problem.path[:-1] in wrong
        mark = wrong[problem.path[:-1]] if required else problem.mark
        return (mark.line or 0, mark.column or 0, required) if mark else (0, 0, required)

    return sorted(kept, key=place)


def _once(by_path: Mapping[SpecPath, Problem]) -> list[Problem]:
    """The problems, without absent keys that another key is meant for, and once where named blocks inherit a value."""
    meant = {
        (*path[:-1], problem.remedy.split("'")[1])
        for path, problem in by_path.items()
        if problem.remedy.startswith("Did you mean '") and problem.value is MISSING
    }
    causes: dict[object, Problem] = {}
    for path, problem in by_path.items():
        if problem.rule != REQUIRED or path not in meant:
            cause = problem.mark if problem.mark and problem.mark.line else path
            causes.setdefault((cause, path[-1:], problem.rule), problem)
    return [*causes.values()]


def _problem(line: Any, document: Document, root: type[Spec]) -> Problem:
    path = _path_in(document.data, line["loc"], line["type"])
    context = line.get("ctx", {})
    match line["type"]:
        case "missing":
            return Problem(REQUIRED, path, MISSING, _addition(path, root), document.mark_of(path))
        case "unknown_key":
            remedy = remedy_for(path, context["known"], context["slot"], root, document.data)
            return Problem(line["msg"], path, MISSING, remedy, document.key_mark_of(path))
        case "rule":
            rule, remedy = context["rule"], context["remedy"]
        case "literal_error":
            words = [word.strip("' ") for word in context["expected"].replace(" or ", ", ").split(",")]
            rule = f"must be {context['expected']}"
            remedy = _word_remedy(path, str(line["input"]), words, document.data)
        case "string_pattern_mismatch":
            rule, remedy = f"must match {context['pattern']}", "Use letters, digits and . _ - + = , @ only."
        case "model_type":
            rule, remedy = "must be a mapping", _as_mapping(context["class_name"], line["input"])
        case "too_short":
            rule, remedy = f"must have at least {context['min_length']} item", "Add one."
        case _:
            rule, remedy = _rule_text(line["msg"]), _nearest(line["type"], line["input"], context)
    return Problem(rule, path, line["input"], remedy, document.mark_of(path))


def _word_remedy(path: SpecPath, word: str, words: Sequence[str], data: Any) -> str:
    """The remedy for a word that is none of some: the one that it names elsewhere, or misspells."""
    key, kind = str(path[-1]), None
    for part in path[:-1]:
        data = data[part]
    if isinstance(data, dict):
        kind = data.get("kind")
    meant = value_meant(key, word, kind)
    if meant is None or meant[key] not in words:
        return suggestion(word, words)
    return f"Did you mean {written(meant) if 'kind' in meant else repr(meant[key])}?"


def _addition(path: SpecPath, root: type[Spec]) -> str:
    """The remedy for a required key: with its values, if these are few words of the model itself."""
    field = root.model_fields.get(str(path[0])) if len(path) == 1 else None
    if field is None or get_origin(field.annotation) is not Literal:
        return f"Add {path[-1]}."
    *others, last = map(str, get_args(field.annotation))
    return f"Add {path[-1]}: {', '.join(others)} or {last}."


def _as_mapping(class_name: str, value: Any) -> str:
    """The remedy for a value in the place of a mapping: a block's name or a number of layers states a run of layers."""
    if class_name == LayerRun.__name__ and isinstance(value, str):
        return f"Write {{use: {value}}}."
    if class_name == LayerRun.__name__ and type(value) is int:
        return f"Write {{repeat: {value}}}."
    return "Write its keys below it, indented."


def _nearest(error: str, value: Any, context: Mapping[str, Any]) -> str:
    """A remedy with the nearest valid value, if the rule determines one."""
    number = _resolved(value)
    match error:
        case "less_than_equal" | "greater_than_equal":
            bound = context.get("le", context.get("ge"))
            return f"Use {bound} or {'less' if error == 'less_than_equal' else 'more'}."
        case "greater_than" if isinstance(value, int):
            return f"Use {context['gt'] + 1} or more."
        case "less_than" | "greater_than":
            bound = context.get("lt", context.get("gt"))
            return f"Use a number {'below' if error == 'less_than' else 'above'} {bound}."
        case "int_type" | "float_type" if value != number:
            return f"Write it without quotes: {number}."
        case "int_type" if isinstance(value, float) and math.isfinite(value):
            return f"Use {round(value)}."
        case "finite_number":
            return "Use a finite number, such as 1.0e-5."
        case "bool_type":
            return boolean_remedy(value)
        case "tuple_type" | "list_type" if isinstance(value, str | int | float):
            return f"Write [{value}]."
        case "int_type" | "float_type" if value is None:
            return "Write a number, or remove the key."
    return ""


def _resolved(value: Any) -> Any:
    """The number that a string is in YAML; any other value unchanged."""
    number = resolve(value) if isinstance(value, str) and len(value) < MAX_DIGITS else value
    return number if type(number) in (int, float) else value


_PLAIN_WORDS = {
    "must be a valid integer": "must be a whole number",
    "must be a valid number": "must be a number",
    "must be a valid string": "must be a string",
    "must be a valid boolean": "must be true or false",
    "must be a valid dictionary": "must be a mapping",
    "must be a valid tuple": "must be a list",
}


def _rule_text(message: str) -> str:
    text = message.replace("Input should be", "must be").replace("Input should have", "must have")
    for theirs, ours in _PLAIN_WORDS.items():
        text = text.replace(theirs, ours)
    return text[0].lower() + text[1:]


def _path_in(data: Any, loc: SpecPath, error: str) -> SpecPath:
    """The path of an error in the data, without the union branches that pydantic adds."""
    path: list[str | int] = []
    for i, part in enumerate(loc):
        in_list = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if in_list or (isinstance(data, dict) and part in data):
            data = data[part]
        elif error != "rule" and not (error == "missing" and i == len(loc) - 1):
            continue
        path.append(part)
    return tuple(path)
