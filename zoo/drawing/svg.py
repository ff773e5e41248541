"""A scene as a self-contained SVG, with selectable text and colours that follow the reader's colour scheme."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from specs.base.printable import printable
from zoo.drawing.colours import COLOURS
from zoo.drawing.scene import Arrow, Box, Point, Scene, Text
from zoo.drawing.text import FONTS

_CORNER = 7.0


def svg(scene: Scene) -> str:
    """The document, with its dark colours."""
    dark = "".join(f"--{name}:{colours[1]};" for name, colours in COLOURS.items())
    return svg_element(
        scene, f"<style>@media (prefers-color-scheme: dark) {{ svg:root {{ {dark} }} }}</style>"
    )


def svg_element(scene: Scene, *definitions: str) -> str:
    """The element with its definitions.  In a page, the page's custom properties of the names of colours set them."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="zoo-drawing" role="img" width="{_n(scene.width)}" height="{_n(scene.height)}" '
        f'viewBox="0 0 {_n(scene.width)} {_n(scene.height)}" font-family="{escape(FONTS)}">',
        f"<title>{_text(scene.title)}</title>",
        f"<desc>{_text(scene.description)}</desc>",
        *definitions,
        f'<rect width="100%" height="100%" fill="{_colour("ground")}"/>',
    ]
    frames = [box for box in scene.boxes if box.shape == "frame"]
    others = [box for box in scene.boxes if box.shape != "frame"]
    depth = {box.id: sum(_holds(outer, box) for outer in frames) for box in frames}
    for box in frames:
        parts += _frame(box, depth[box.id])
    for arrow in sorted(scene.arrows, key=lambda arrow: arrow.kind == "scores"):
        parts += _arrow(arrow)
    for box in others:
        parts += _box(box)
    parts += [line for text in scene.texts for line in _line(text)]
    return "\n".join([*parts, "</svg>", ""])


def plain(document: str) -> str:
    """The document with literal light colours, for renderers without custom properties."""
    return re.sub(r"var\(--[\w-]+, (#\w+)\)", r"\1", document)


def _holds(outer: Box, box: Box) -> bool:
    return (
        outer is not box
        and outer.y <= box.y
        and box.y + box.height <= outer.y + outer.height
        and outer.x <= box.x <= outer.x + outer.width
    )


def _colour(name: str) -> str:
    return f"var(--{name}, {COLOURS[name][0]})"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    return escape(printable(text), quote=False)


def _line(text: Text) -> Iterator[str]:
    weight = ' font-weight="700"' if text.bold else ""
    anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
    fill = _colour("quiet" if text.quiet else "text")
    yield f'<text x="{_n(text.x)}" y="{_n(text.y)}" font-size="{_n(text.size)}"{weight}{anchor} fill="{fill}">{_text(text.text)}</text>'


def _rectangle(
    x: float, y: float, width: float, height: float, radius: float, fill: str, stroke: str, extra: str = ""
) -> str:
    return (
        f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(radius)}" '
        f'fill="{fill}" stroke="{stroke}"{extra}/>'
    )


def _frame(box: Box, depth: int) -> Iterator[str]:
    fill = _colour("ground" if depth % 2 else "panel")
    yield _group(box)
    yield _rectangle(box.x, box.y, box.width, box.height, 12, fill, _colour("quiet"), ' stroke-width="1.2"')
    for text in box.texts:
        yield from _line(text)
    yield "</g>"


def _box(box: Box) -> Iterator[str]:
    line = _colour("text")
    match box.shape:
        case "box":
            fill = _colour(box.role or "other")
            for shift in (6, 3) if box.many else ():
                yield _rectangle(box.x + shift, box.y - shift, box.width, box.height, 5, fill, line)
            yield _group(box)
            if box.part is not None and box.part.modules:
                yield f"<title>{_text(_tip(box))}</title>"
            yield _rectangle(box.x, box.y, box.width, box.height, 5, fill, line)
        case "pill":
            yield _group(box)
            yield _rectangle(
                box.x,
                box.y,
                box.width,
                box.height,
                min(10.0, box.height / 2),
                _colour(box.role or "other"),
                line,
            )
        case "sum":
            yield "<g>"
            x, y = box.middle
            yield f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(box.width / 2)}" fill="{_colour("ground")}" stroke="{line}"/>'
        case "point":
            return
        case _:
            yield "<g>"
    for text in box.texts:
        yield from _line(text)
    yield "</g>"


def _group(box: Box) -> str:
    """The start of a box's elements.

    A part of the model has marks for scripts: its identifier in the scene, the path of its first module, and the path in the
    spec of the keys that describe it.
    """
    if box.subject is None:
        return "<g>"
    marks = {"box": box.id, "path": next(iter(box.subject.modules), ""), "keys": box.subject.keys}
    texts = [f' data-{name}="{escape(printable(value))}"' for name, value in marks.items() if value]
    return f"<g{''.join(texts)}>"


def _tip(box: Box) -> str:
    """The tooltip of a box: its modules, and all their parameters."""
    assert box.part is not None
    modules = box.part.modules
    names = modules[0] if len(modules) == 1 else f"{modules[0]} to {modules[-1]}"
    return f"{names}: {box.part.parameters:,} parameters"


def _arrow(arrow: Arrow) -> Iterator[str]:
    colour = _colour("quiet" if arrow.kind == "tie" else "text")
    path = _path(arrow.points, 5.0 if arrow.head else 0.0)
    dash = ' stroke-dasharray="5 4"' if arrow.kind == "tie" else ""
    if arrow.kind == "scores":  # it is drawn over other lines
        yield f'<path d="{path}" fill="none" stroke="{_colour("panel")}" stroke-width="5"/>'
    yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.3"{dash}/>'
    if arrow.head:
        yield f'<path d="{_head(arrow.points)}" fill="{colour}"/>'


def _path(points: Sequence[Point], short: float) -> str:
    """Lines with rounded corners, which end ``short`` of the last point."""
    (x, y), (bx, by) = points[-1], points[-2]
    length = abs(x - bx) + abs(y - by) or 1.0
    end = (x - (x - bx) / length * short, y - (y - by) / length * short)
    path = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for before, corner, after in zip(points, points[1:], [*points[2:], None], strict=False):
        if after is None:
            path.append(f"L{_n(end[0])} {_n(end[1])}")
            continue
        near, far = _towards(corner, before), _towards(corner, after)
        path.append(f"L{_n(near[0])} {_n(near[1])}Q{_n(corner[0])} {_n(corner[1])} {_n(far[0])} {_n(far[1])}")
    return "".join(path)


def _towards(corner: Point, other: Point) -> Point:
    """The point where the rounding of a corner begins or ends."""
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = abs(dx) + abs(dy) or 1.0
    step = min(_CORNER, length / 2) / length
    return corner[0] + dx * step, corner[1] + dy * step


def _head(points: Sequence[Point]) -> str:
    """A triangle that points along the last line."""
    (x, y), (bx, by) = points[-1], points[-2]
    length = abs(x - bx) + abs(y - by) or 1.0
    ux, uy = (x - bx) / length, (y - by) / length
    base = (x - 8 * ux, y - 8 * uy)
    corners = [(x, y), (base[0] - 3.6 * uy, base[1] + 3.6 * ux), (base[0] + 3.6 * uy, base[1] - 3.6 * ux)]
    return "M" + "L".join(f"{_n(a)} {_n(b)}" for a, b in corners) + "Z"
