"""Which module builds which spec."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from torch import nn

from specs.base.base import Component
from specs.base.errors import PluginError
from specs.base.registry import kind_of, load_implementation, slot_of
from zoo.context import BuildContext
from zoo.core.constructed_values import constructing

ModuleClass = TypeVar("ModuleClass", bound=Callable[..., nn.Module])
Condition = Callable[[Any, Any], bool]
"""Whether a module builds a spec in a context."""
Extension = Callable[[Any, Any, Any], None]
"""Adds to a built module what its spec asks for: ``extension(module, spec, context)``."""

_builders: dict[type[Component], Callable[..., nn.Module]] = {}
_variants: dict[type[Component], list[tuple[Condition, Callable[..., nn.Module]]]] = {}
_extensions: list[tuple[type[Component], Extension]] = []


def builds(*specs: type[Component], when: Condition | None = None) -> Callable[[ModuleClass], ModuleClass]:
    """Class decorator: ``Module(spec, context)`` is how these spec classes are built.

    when: builds only specs for which ``when(spec, context)`` is true. A spec that several such modules build gets the last
    one, which is the most special: modules are registered after those that they extend, and a plugin's after the built-in ones.
    """

    def add(module: ModuleClass) -> ModuleClass:
        for spec in specs:
            if not _is_built_in(module):
                _load_built_in(spec)
            if when is not None:
                _variants.setdefault(spec, []).append((when, module))
            elif spec in _builders:
                raise PluginError(f"{spec.__qualname__} has two builders: {_builders[spec]!r} and {module!r}")
            else:
                _builders[spec] = module
        return module

    return add


def extends(spec: type[Component]) -> Callable[[Extension], Extension]:
    """Function decorator: ``extension(module, spec, context)`` runs on each module built from this spec class or its subclasses."""

    def add(extension: Extension) -> Extension:
        _extensions.append((spec, extension))
        return extension

    return add


def _remedy(spec: Component) -> str:
    """The instruction for the author of a kind without a builder."""
    implementation = kind_of(spec).implementation
    package, _, file = type(spec).__module__.rpartition(".")
    if package == "specs.kinds":
        return f"Decorate its module in zoo/components/{file}.py with zoo.registry.builds."
    if implementation is None:
        return (
            f"Name the module that builds it where {type(spec).__module__}.{type(spec).__qualname__} is registered: "
            f"register('{slot_of(spec)}', implementation='package.module')."
        )
    return f"Decorate its module in {implementation} with zoo.registry.builds."


@functools.cache
def _load_built_in(spec: type[Component]) -> None:
    """Import the builders and the extensions of a built-in kind, and of those that a kind derives from."""
    components: Any = importlib.import_module("zoo.components")
    for base in spec.__mro__:
        package, _, file = base.__module__.rpartition(".")
        if package == "specs.kinds":
            components.load(file)


def _is_built_in(builder: Callable[..., nn.Module]) -> bool:
    return getattr(builder, "__module__", "").partition(".")[0] == __package__


def build_component(spec: Component, context: BuildContext) -> nn.Module:
    """The module of a spec, on the device and with the dtype that torch is set to.

    Raises :class:`PluginError` when a plugin registered the kind but nothing builds it.
    """
    _load_built_in(type(spec))
    if type(spec) not in _builders:
        load_implementation(spec)
    if type(spec) not in _builders:
        raise PluginError(f"Kind '{spec.kind}' has no builder\n  {_remedy(spec)}")
    fitting = (module for when, module in reversed(_variants.get(type(spec), ())) if when(spec, context))
    builder = next(fitting, _builders[type(spec)])
    if _is_built_in(builder):  # states its initial values
        module = builder(spec, context)
    else:
        with constructing() as keep:
            module = builder(spec, context)
            keep(module)
    for kind, extension in _extensions:
        if isinstance(spec, kind):
            extension(module, spec, context)
    module.component_kind = spec.kind
    return module
