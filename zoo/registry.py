"""Which module builds which spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import nn

from specs.base.base import Component
from specs.base.errors import PluginError
from specs.base.registry import load_implementation
from zoo.context import BuildContext
from zoo.core.constructed_values import constructing

ModuleClass = TypeVar("ModuleClass", bound=Callable[..., nn.Module])

_builders: dict[type[Component], Callable[..., nn.Module]] = {}


def builds(*specs: type[Component]) -> Callable[[ModuleClass], ModuleClass]:
    """Class decorator: ``Module(spec, context)`` is how these spec classes are built."""

    def add(module: ModuleClass) -> ModuleClass:
        for spec in specs:
            if spec in _builders:
                raise PluginError(f"{spec.__qualname__} has two builders: {_builders[spec]!r} and {module!r}")
            _builders[spec] = module
        return module

    return add


def build_component(spec: Component, context: BuildContext) -> nn.Module:
    """The module of a spec, on the device and with the dtype that torch is set to.

    Raises :class:`PluginError` when a plugin registered the kind but nothing builds it.
    """
    if type(spec) not in _builders:
        load_implementation(spec)
    if type(spec) not in _builders:
        raise PluginError(
            f"Kind '{spec.kind}' has no builder\n  Decorate its module with zoo.registry.builds."
        )
    builder = _builders[type(spec)]
    if getattr(builder, "__module__", "").partition(".")[0] == __package__:  # states its initial values
        module = builder(spec, context)
    else:
        with constructing() as keep:
            module = builder(spec, context)
            keep(module)
    module.component_kind = spec.kind  # type: ignore[assignment]
    return module
