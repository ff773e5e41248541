"""The directories that clients load as they are: one file per client."""

from __future__ import annotations

from exporters.layouts.genai import GENAI
from exporters.layouts.layout import Deployment, Layout
from exporters.layouts.onnx import ONNX
from exporters.layouts.optimum import OPTIMUM
from exporters.layouts.transformers_js import TRANSFORMERS_JS
from specs.errors import UserError, option_name

__all__ = ["LAYOUTS", "Deployment", "Layout", "LayoutError", "check_layout"]

LAYOUTS = {layout.name: layout for layout in (ONNX, OPTIMUM, GENAI, TRANSFORMERS_JS)}


class LayoutError(UserError):
    """A model that a client cannot load; names the layouts that work."""


def check_layout(layout: Layout, deployment: Deployment) -> None:
    """Raise :class:`LayoutError` unless the client of a layout can load a model."""
    if fault := layout.misfit(deployment):
        fitting = [other.name for other in LAYOUTS.values() if other.misfit(deployment) is None]
        raise LayoutError(
            f"{option_name('layout')} {layout.name}: {layout.client} cannot load {deployment.spec.name}: {fault}\n"
            f"  layouts that work: {', '.join(fitting)}"
        )
