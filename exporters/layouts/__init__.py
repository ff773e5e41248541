"""Directory layouts that clients load directly: each file in this folder with a ``LAYOUT`` defines one."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from exporters.layouts.layout import Deployment, Layout
from specs.base.errors import UserError, option_name

__all__ = ["DEFAULT", "LAYOUTS", "Deployment", "Layout", "LayoutError", "check_layout"]

DEFAULT = "onnx"


def _found() -> dict[str, Layout]:
    """The layouts of this folder by name, the default first."""
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    layouts = [module.LAYOUT for module in modules if hasattr(module, "LAYOUT")]
    return {layout.name: layout for layout in sorted(layouts, key=lambda shown: shown.name != DEFAULT)}


LAYOUTS = _found()
"""The layouts by name. A package adds one with ``LAYOUTS[layout.name] = layout``."""


class LayoutError(UserError):
    """A client cannot load a model; the message names the layouts that work."""


def check_layout(layout: Layout, deployment: Deployment) -> None:
    """Raise :class:`LayoutError` unless the client of a layout can load a model."""
    if fault := layout.misfit(deployment):
        fitting = [other.name for other in LAYOUTS.values() if other.misfit(deployment) is None]
        raise LayoutError(
            f"{option_name('layout')} {layout.name}: {layout.client} cannot load {deployment.spec.name}: {fault}\n"
            f"  Use {option_name('layout')} {' or '.join(fitting)}."
        )
