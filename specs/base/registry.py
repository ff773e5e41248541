"""Registry of the kinds of each slot, which plugins extend.

A *slot* is a field of a spec that holds one of several kinds: ``attention``, ``norm``, ``position``, ...
A *kind* is a pydantic class with ``kind: Literal["..."]``.  It registers when its module is imported.  The modules of built-in
kinds are declared in :mod:`specs.kinds` and imported when one of their kinds is looked up: creating the classes of all kinds
takes longer than reading a spec.  Plugins name a module that registers more in the entry-point group ``zoo.components``.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pydantic import BaseModel, ValidationError

from specs.base.errors import PluginError
from specs.base.plugins import import_foreign, load_entry, plugin_entries

if TYPE_CHECKING:
    from specs.base.base import Component

SpecClass = TypeVar("SpecClass", bound="type[Component]")


class Kind(NamedTuple):
    """A registered kind: its spec class, and the module whose import registers its builder."""

    spec: type[Component]
    implementation: str | None


EVERY_SLOT = "every slot"
"""The slot of the interface of kinds whose slot has none of its own."""


class Kinds(MutableMapping[str, Kind]):
    """The kinds of a slot by name, in the order of the declarations; looking one up imports its module."""

    def __init__(self) -> None:
        self._entries: dict[str, Kind | str] = {}

    def __getitem__(self, name: str) -> Kind:
        if isinstance(module := self._entries[name], str):
            importlib.import_module(module)
        return cast(Kind, self._entries[name])

    def __setitem__(self, name: str, kind: Kind) -> None:
        self._entries[name] = kind
        _registered.setdefault(kind.spec, kind)

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def declare(self, modules: Mapping[str, str]) -> None:
        """Add kinds with the modules that register them."""
        self._entries |= modules

    def is_free(self, name: str, module: str) -> bool:
        """Whether a module may register a kind: nothing has, and no other module is declared to."""
        return self._entries.get(name, module) == module

    def imported(self) -> Iterator[tuple[str, Kind]]:
        """The kinds whose modules are imported."""
        return ((name, kind) for name, kind in self._entries.items() if isinstance(kind, Kind))


_slots: dict[str, Kinds] = {}
_registered: dict[type[Component], Kind] = {}
_interfaces: dict[str, type[Component]] = {}
_defaults: dict[str, str] = {}
_plugins_loaded = False


def interface(*slots: str) -> Callable[[SpecClass], SpecClass]:
    """Class decorator: every kind of some slots extends this class."""

    def add(spec: SpecClass) -> SpecClass:
        _interfaces.update(dict.fromkeys(slots, spec))
        return spec

    return add


def declare(slot: str, modules: Mapping[str, str]) -> None:
    """State the kinds of a slot, each with the module whose import registers it."""
    _slots.setdefault(slot, Kinds()).declare(modules)


def register(
    slot: str, *, implementation: str | None = None, default: bool = False
) -> Callable[[SpecClass], SpecClass]:
    """Class decorator that adds a kind to ``slot``, creating the slot if it is new.

    ``implementation`` is the dotted name of the module that registers its builder (``zoo.registry.builds``); built-in
    kinds need none.  ``default`` makes it the kind of mappings without a ``kind``.  Raises :class:`PluginError` if the
    slot already has the kind, if the class does not extend the interface of the slot, or if a field has the name of a
    method there.
    """

    def add(spec: SpecClass) -> SpecClass:
        name = cast("type[Component]", spec).model_fields["kind"].default
        kinds = _slots.setdefault(slot, Kinds())
        if not kinds.is_free(name, spec.__module__):
            earlier = kinds[name].spec
            raise PluginError(
                f"{slot} kind '{name}' is registered twice: by {earlier.__module__}.{earlier.__qualname__} "
                f"and by {spec.__module__}.{spec.__qualname__}"
            )
        extended = _interfaces.get(slot, _interfaces[EVERY_SLOT])
        if not issubclass(spec, extended):
            raise PluginError(
                f"{slot} kind '{name}' must extend {extended.__module__}.{extended.__qualname__}, and "
                f"{spec.__module__}.{spec.__qualname__} does not"
            )
        answers = dir(extended)
        fields = cast("type[Component]", spec).model_fields
        if shadowing := [field for field in fields if field != "kind" and field in answers]:
            raise PluginError(
                f"{slot} kind '{name}' has a field named {shadowing[0]}, which every {slot} kind answers: rename it in "
                f"{spec.__module__}.{spec.__qualname__}"
            )
        kinds[name] = Kind(spec, implementation)
        if default:
            _defaults[slot] = name
        return spec

    return add


def load_plugins() -> None:
    """Import every module of the entry-point group once; failures are kept for ``plugins.broken_plugins``."""
    global _plugins_loaded
    if _plugins_loaded:
        return
    _plugins_loaded = True
    for entry in plugin_entries():
        with contextlib.suppress(PluginError):
            load_entry(entry)


def kinds(slot: str) -> Kinds:
    """The kinds of ``slot`` by name, plugins included."""
    load_plugins()
    return _slots[slot]


def default_kind(slot: str) -> str | None:
    """The kind of a mapping without a ``kind``, if ``slot`` has a default."""
    return _defaults.get(slot)


def slots() -> tuple[str, ...]:
    """The names of all slots."""
    load_plugins()
    return tuple(_slots)


def kind_of(spec: Component) -> Kind:
    """The registration of a spec's own class."""
    return _registered[type(spec)]


def slot_of(spec: Component) -> str | None:
    """The slot in which a spec's own class is registered, or None."""
    return slot_of_class(type(spec))


def slot_of_class(spec: type[BaseModel]) -> str | None:
    """The slot in which a class is registered, the first of several; None for classes that are no kind."""
    registered = ((slot, kind) for slot, kinds in _slots.items() for _, kind in kinds.imported())
    return next((slot for slot, kind in registered if kind.spec is spec), None)


def kinds_with(slot: str | None, key: str) -> list[str]:
    """The kinds of a slot that take a key; none for no slot."""
    known = kinds(slot) if slot is not None else {}
    return [name for name, kind in known.items() if key in kind.spec.model_fields]


def load_implementation(spec: Component) -> None:
    """Import the module that implements a plugin's kind; no-op for built-in kinds.

    Raises :class:`PluginError` when it cannot be imported.
    """
    implementation = kind_of(spec).implementation
    if implementation is None:
        return
    try:
        import_foreign(implementation)
    except PluginError as error:
        raise PluginError(
            f"kind '{spec.kind}' needs {implementation}, which cannot be loaded: {error}"
        ) from error


def held_by_new_kind(entries: Mapping[str, Any], new: str) -> Mapping[str, Any]:
    """The entries of a mapping that remain valid when its kind becomes ``new``.

    These are the keys that the new kind takes, except those with the old kind's default value: an explicit default must
    not outlive its kind, just as an implicit one does not.  If the new kind is unknown, a mapping with a kind keeps no
    entries, and one without keeps all.
    """
    load_plugins()
    old = entries.get("kind")
    homes = [slot for slot, kinds in _slots.items() if new in kinds]
    if not homes:
        return {} if old else entries
    keys = {key for slot in homes for key in _slots[slot][new].spec.model_fields}
    former = next((_slots[slot][name].spec for slot in homes for name in [old or _defaults.get(slot)]
                   if isinstance(name, str) and name in _slots[slot]), None)  # fmt: skip
    return {
        key: value
        for key, value in entries.items()
        if key in keys and (key == "kind" or former is None or not _is_default(former, key, value))
    }


def _is_default(spec: type[Component], key: str, value: Any) -> bool:
    """Whether a value is the default of a key of a spec class."""
    field = spec.model_fields.get(key)
    if field is None or field.is_required():
        return False
    default = field.default
    if isinstance(default, BaseModel) and value is not None:
        try:
            return type(default).model_validate(value) == default
        except ValidationError:
            return False
    return bool(value == default) and isinstance(value, bool) == isinstance(default, bool)
