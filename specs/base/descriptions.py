"""Descriptions of fields and values for the JSON Schema, as Markdown in docstrings below the fields."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel


class ValueDescriptions:
    """Annotation of a ``Literal``: one sentence for each of its values."""

    def __init__(self, descriptions: Mapping[str, str]) -> None:
        self.descriptions = descriptions

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        generated: dict[str, Any] = handler(schema)
        values = generated.get("enum", ())
        return {**generated, "enumDescriptions": [self.descriptions.get(value, "") for value in values]}


def one_line(text: str) -> str:
    """Markdown with one line per paragraph, and code in single backticks."""
    paragraphs = inspect.cleandoc(text).replace("``", "`").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def field_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """The descriptions of a model's fields: the docstring below each, in its class or the nearest base.

    They are read from the source on demand, so that only commands that need them pay for them.  Classes without source
    have none.
    """
    descriptions: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel):
            descriptions |= _docstrings(base.__module__).get(base.__qualname__, {})
    return {name: text for name, text in descriptions.items() if name in model.model_fields}


@functools.cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """The docstrings below the annotated names of each class of a module, by the qualified name of the class."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}
    return dict(_classes(tree, ""))


def _classes(node: ast.AST, prefix: str) -> Iterator[tuple[str, dict[str, str]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield prefix + child.name, dict(_below_names(child.body))
            yield from _classes(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef):
            yield from _classes(child, f"{prefix}{child.name}.<locals>.")


def _below_names(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement, following in itertools.pairwise(body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, one_line(text)
