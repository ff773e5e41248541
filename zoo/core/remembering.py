"""Results of readings of reduced models, kept from one spec to the next.

A reading of a reduced model depends on the parts of the spec alone, not on its name, its published counts or the number of layers, so
that another depth needs no other trace.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

from specs.base.base import Component, Spec
from specs.base.registry import kind_of
from specs.model.model import Model

_ABOUT = {"name", "summary", "source", "year", "expect"}
"""Keys that change no reading."""

_KEPT = 64
"""The number of results that are kept of each reading: polynomials and sizes, a few hundred kilobytes each at most."""

Rest = ParamSpec("Rest")
Result = TypeVar("Result")


def remembered(
    reading: Callable[Concatenate[Model, Rest], Result],
) -> Callable[Concatenate[Model, Rest], Result]:
    """Let a reading of a spec, with other arguments that can be keys, keep its last results, which must not be changed."""
    kept: OrderedDict[Any, Result] = OrderedDict()
    lock = Lock()

    @wraps(reading)
    def call(spec: Model, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Result:
        about = reading_key(spec)
        if about is None:
            return reading(spec, *args, **kwargs)
        key = about, args, tuple(kwargs.items())
        with lock:
            if key in kept:
                kept.move_to_end(key)
                return kept[key]
        result = reading(spec, *args, **kwargs)
        with lock:
            kept[key] = result
            if len(kept) > _KEPT:
                kept.popitem(last=False)
        return result

    return call


def reading_key(spec: Model) -> str | None:
    """All of a spec that a reading depends on; None with a plugin's component, whose module may count whatever it likes, and be
    loaded again."""
    return None if _has_plugin(spec) else spec.model_dump_json(exclude=_ABOUT)


def _has_plugin(part: Any) -> bool:
    """Whether a part of a spec is, or contains, a plugin's component."""
    if isinstance(part, Mapping):
        return any(map(_has_plugin, part.values()))
    if isinstance(part, tuple):
        return any(map(_has_plugin, part))
    if not isinstance(part, Spec):
        return False
    if isinstance(part, Component) and kind_of(part).implementation is not None:
        return True
    return any(_has_plugin(getattr(part, name)) for name in type(part).model_fields)
