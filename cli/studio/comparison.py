"""The differences between a spec and its base: what the text changes, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.studio.model_figures import ModelFigures
from specs.base.errors import path_text
from specs.forms.difference import Difference, differences
from specs.language.writing import flow
from specs.model.model import Model
from zoo.reports.quantities import ComparedSizes, quantities

_LISTED = 40
"""The most differences that are listed."""

_LONGEST = 80
"""The most characters of a value."""


def comparison(base: ModelFigures, figures: ModelFigures, batch: int, length: int | None) -> dict[str, Any]:
    """The differences in keys, and in parameters, FLOPs and memory in half precision, as ``zoo diff`` reports them."""
    sizes = _sizes((base.spec, figures.spec), batch, length)
    changes = [] if base is figures else differences(base.spec, figures.spec)
    return {
        "name": base.spec.name,
        "sizes": {"batch": sizes.batch, "length": sizes.length, "past": sizes.past},
        "changes": [change_data(change) for change in changes[:_LISTED]],
        "more": max(0, len(changes) - _LISTED),
        "quantities": [cost.as_dict() for cost in quantities(base.measured, figures.measured, sizes)],
    }


def change_data(change: Difference) -> dict[str, Any]:
    """A difference as JSON data, with values as short YAML."""
    return {
        "path": list(change.path_b),
        "where": path_text(change.path_b),
        "layers": None if change.layers is None else len(change.layers),
        "a": _short(change.a),
        "b": _short(change.b),
        "full": [_full(change.a), _full(change.b)],
        "follows": change.follows,
    }


def _short(value: Any) -> str:
    """A value in few words: a part by its kind."""
    if isinstance(value, Mapping) and "kind" in value:
        return str(value["kind"])
    if isinstance(value, float):
        return f"{value:.6g}"
    text = _full(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _full(value: Any) -> str:
    return "none" if value is None else flow(value)


def _sizes(specs: tuple[Model, Model], batch: int, length: int | None) -> ComparedSizes:
    """The sizes at a length, cut to the shorter context of both."""
    if length is None:
        return ComparedSizes.of(specs, batch)
    contexts = [
        context
        for spec in specs
        for _, stack in spec.stacks()
        if spec.embedding_of(stack).any_length and (context := spec.context_length_of(stack)) is not None
    ]
    return ComparedSizes.of(specs, batch, min([length, *contexts]))
