"""The kinds a spec may name, slot by slot, and where plugins add theirs.

A *slot* is a place in a spec that holds one of several kinds: ``attention``, ``norm``, ``position``, ...
A *kind* is a pydantic class with ``kind: Literal["..."]``.  Built-in kinds register when their module is
imported; a third party names a module in the entry-point group ``zoo.components`` that registers more.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from specs.errors import PluginError

if TYPE_CHECKING:
    from specs.base import Component

ENTRY_POINT_GROUP = "zoo.components"

SpecClass = TypeVar("SpecClass", bound="type[Component]")


@dataclass(frozen=True)
class Kind:
    """One registered kind: its spec class, and the module whose import registers its builder."""

    spec: type[Component]
    implementation: str | None


_slots: dict[str, dict[str, Kind]] = {}
_defaults: dict[str, str] = {}
_broken: dict[str, PluginError] = {}
_plugins_loaded = False


def register(
    slot: str, *, implementation: str | None = None, default: bool = False
) -> Callable[[SpecClass], SpecClass]:
    """Class decorator that adds a kind to ``slot``, creating the slot if it is new.

    ``implementation`` is the dotted module that builds it (``zoo.registry.builds``); the built-in kinds need
    none.  A mapping that names no kind is of the ``default`` one.  Raises :class:`PluginError` when the slot has
    that kind already.
    """

    def add(spec: SpecClass) -> SpecClass:
        name = cast("type[Component]", spec).model_fields["kind"].default
        kinds = _slots.setdefault(slot, {})
        if name in kinds:
            earlier = kinds[name].spec
            raise PluginError(
                f"{slot} kind '{name}' is registered twice: by {earlier.__module__}.{earlier.__qualname__} "
                f"and by {spec.__module__}.{spec.__qualname__}"
            )
        kinds[name] = Kind(spec, implementation)
        if default:
            _defaults[slot] = name
        return spec

    return add


def load_plugins() -> None:
    """Import every module of the entry-point group, once; what fails is kept for ``broken_plugins``."""
    global _plugins_loaded
    if _plugins_loaded:
        return
    _plugins_loaded = True
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            importlib.import_module(entry.value)
        except Exception as error:
            distribution = entry.dist.name if entry.dist else "an unnamed distribution"
            _broken[entry.name] = PluginError(
                f"plugin '{entry.name}' of {distribution} ({entry.value}) cannot be loaded: "
                f"{type(error).__name__}: {error}"
            )


def broken_plugins() -> dict[str, PluginError]:
    """Entry points that failed to load, by name, each with the error that names it."""
    return dict(_broken)


def kinds(slot: str) -> dict[str, Kind]:
    """The kinds of ``slot`` by name, plugins included."""
    load_plugins()
    return _slots[slot]


def default_kind(slot: str) -> str | None:
    """The kind of a mapping that names none, where ``slot`` has one."""
    return _defaults.get(slot)


def slots() -> tuple[str, ...]:
    """Every slot that has a kind."""
    load_plugins()
    return tuple(_slots)


def kind_of(spec: Component) -> Kind:
    """The registration of a spec's own class."""
    return next(kind for kinds in _slots.values() for kind in kinds.values() if kind.spec is type(spec))


def keys_of_kind(name: str) -> frozenset[str] | None:
    """The keys that kind ``name`` takes in any slot, or None where no slot has it."""
    load_plugins()
    named = [kinds[name].spec for kinds in _slots.values() if name in kinds]
    return frozenset(key for spec in named for key in spec.model_fields) if named else None
