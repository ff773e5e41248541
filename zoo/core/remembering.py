"""Results of readings of reduced models, kept from one spec to the next.

A reading of a reduced model depends on the parts of the spec alone, not on its name, its published counts or the number of layers, so
that another depth needs no other trace. A reading of one graph depends on the layers of the stacks that it runs, so that an edit of a
decoder needs no other trace of an image encoder.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

from specs.base.base import Component, Spec
from specs.base.registry import kind_of
from specs.model.model import Model

_ABOUT = {"name", "summary", "source", "year", "expect", "initialization"}
"""Keys that change no reading."""

_LAYERS = {"layers", "block", "blocks"}
"""The fields of a stack that describe its layers."""

_VALUES = (str, int, float, type(None))

_KEPT = 64
"""The number of results that are kept of each reading: polynomials and sizes, a few hundred kilobytes each at most."""

Subject = TypeVar("Subject")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")

Reading = Callable[Concatenate[Subject, Rest], Result]


def remembered_by(
    about: Callable[[Subject], Hashable | None],
) -> Callable[[Reading[Subject, Rest, Result]], Reading[Subject, Rest, Result]]:
    """Let a reading, whose other arguments can be keys, keep its last results, which must not be changed.

    ``about``: all of its subject that it depends on; None for a subject whose results are not kept.
    """

    def decorate(reading: Reading[Subject, Rest, Result]) -> Reading[Subject, Rest, Result]:
        kept: OrderedDict[Any, Result] = OrderedDict()
        lock = Lock()

        @wraps(reading)
        def call(subject: Subject, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Result:
            known = about(subject)
            if known is None:
                return reading(subject, *args, **kwargs)
            key = known, args, tuple(kwargs.items())
            with lock:
                if key in kept:
                    kept.move_to_end(key)
                    return kept[key]
            result = reading(subject, *args, **kwargs)
            with lock:
                kept[key] = result
                if len(kept) > _KEPT:
                    kept.popitem(last=False)
            return result

        return call

    return decorate


def reading_key(
    spec: Model, *, without: Iterable[str] = (), without_layers_of: Iterable[str] = ()
) -> str | None:
    """All of a spec that a reading depends on, which may read nothing of some stacks, and run no layer of others; None with a
    plugin's component, whose module may count whatever it likes, and be loaded again."""
    if has_plugin(spec):
        return None
    return spec.model_dump_json(
        exclude={
            **dict.fromkeys((*_ABOUT, *without), True),
            **dict.fromkeys(without_layers_of, _LAYERS),
        }
    )


def parts_key(*parts: Any) -> tuple[str, ...] | None:
    """All of some parts of a spec, and of plain values, that a reading depends on; None with a plugin's component."""
    if any(map(has_plugin, parts)):
        return None
    return tuple(part.model_dump_json() if isinstance(part, Spec) else repr(part) for part in parts)


def remembered(reading: Reading[Model, Rest, Result]) -> Reading[Model, Rest, Result]:
    """Let a reading of a spec keep its last results, as :func:`remembered_by` its key."""
    return remembered_by(reading_key)(reading)


def has_plugin(part: Any) -> bool:
    """Whether a part of a spec, or a context in which one is built, is or contains a plugin's component."""
    if isinstance(part, _VALUES):
        return False
    if isinstance(part, Component) and kind_of(part).implementation is not None:
        return True
    if isinstance(part, Spec) or is_dataclass(part):
        return any(map(has_plugin, vars(part).values()))
    inner = part.values() if isinstance(part, Mapping) else part if isinstance(part, tuple) else ()
    return any(map(has_plugin, inner))
