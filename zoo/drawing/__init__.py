"""Drawings of architectures: the residual streams, where the norms sit, what is repeated, and parameters on the parts.

A spec is read into a :mod:`diagram <zoo.drawing.diagram>`, which says what is drawn; its layout is a
:mod:`scene <zoo.drawing.scene>`, where everything has a place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specs.model import Model
    from zoo.drawing.scene import Scene


def draw_scene(spec: Model) -> Scene:
    """The drawing of a model as boxes, arrows and text with places."""
    from zoo.drawing.layout import lay_out
    from zoo.drawing.reading import read

    return lay_out(read(spec))


def draw_svg(spec: Model) -> str:
    """The drawing of a model as an SVG document; inlined in a page, it takes the page's colours."""
    from zoo.drawing.svg import svg

    return svg(draw_scene(spec))


def draw_png(spec: Model, scale: float = 2.0) -> bytes:
    """The drawing of a model as a PNG file, with ``scale`` pixels for each of the SVG's.

    Raises :class:`specs.errors.UserError` where the libraries for that are missing, or it would be too large.
    """
    from zoo.drawing.png import png

    return png(draw_scene(spec), scale)


def draw_mermaid(spec: Model) -> str:
    """The drawing of a model as a Mermaid flowchart."""
    from zoo.drawing.mermaid import mermaid
    from zoo.drawing.reading import read

    return mermaid(read(spec))
