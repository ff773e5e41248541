"""Drawings in pages, below a heading that says what a drawing of its own says in its title."""

from __future__ import annotations

from dataclasses import replace

from zoo.drawing.scene import Scene
from zoo.drawing.svg import svg_element

_MARGIN = 12.0


def untitled(scene: Scene) -> Scene:
    """The scene without its title and the facts below it."""
    tops = [box.y for box in scene.boxes] + [y for arrow in scene.arrows for _, y in arrow.points]
    rise = _MARGIN - min(tops)
    return replace(
        scene,
        height=round(scene.height + rise, 1),
        boxes=tuple(box.moved(0, rise) for box in scene.boxes),
        arrows=tuple(arrow.moved(0, rise) for arrow in scene.arrows),
        texts=tuple(text.moved(0, rise) for text in scene.texts if text.y > min(tops)),
    )


def inline_svg(scene: Scene) -> str:
    """The SVG of a scene for a page with a heading."""
    return svg_element(untitled(scene))
