"""The layout of a diagram: columns side by side, lines between them, title and legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zoo.core.units import parameter_text
from zoo.drawing.boxes import GAP, LINE, MARGIN, TINY
from zoo.drawing.columns import ColumnLayout
from zoo.drawing.diagram import Diagram, DiagramColumn, Way
from zoo.drawing.pieces import Piece
from zoo.drawing.scene import Arrow, Box, Point, Scene, Text
from zoo.drawing.text import lines_of, text_width

LARGE, FACTS = 20.0, 12.0
"""Font sizes of the title and of the text below it."""
LEAST_WIDTH = 440.0


def lay_out(diagram: Diagram) -> Scene:
    """The scene of a diagram."""
    pair = len(diagram.columns) == 2
    columns: list[Piece] = []
    x = 0.0
    for column in diagram.columns:
        piece = ColumnLayout(column, reads_encoder=pair and column.name == "decoder").piece()
        columns.append(piece.moved(x + piece.left, 0))
        x += piece.left + piece.right + 2 * MARGIN
    boxes = [box for piece in columns for box in piece.boxes]
    arrows = [arrow for piece in columns for arrow in piece.arrows]
    if pair:
        arrows += _from_encoder(*columns)
    crown = _crown(diagram.meeting, columns) if diagram.meeting else None
    if crown is not None:
        boxes += crown.boxes
        arrows += [*crown.arrows, *_into_crown(crown, columns)]
    arrows += _ties(diagram, boxes, columns)
    places = [point for arrow in arrows for point in arrow.points]
    left = min([0.0, *(x for x, _ in places)])
    right = max([x - 2 * MARGIN, *(x for x, _ in places)])
    top = min([*(-piece.height for piece in columns), *(box.y for box in boxes), *(y for _, y in places)])
    return _titled(diagram, boxes, arrows, left, right, top)


def _crown(way: Way, columns: Sequence[Piece]) -> Piece:
    """The head to which both columns lead, above the middle between them."""
    piece = ColumnLayout(DiagramColumn("meeting", way), reads_encoder=False).piece()
    streams = [column.exit.x for column in columns if column.exit is not None]
    return piece.moved(sum(streams) / len(streams), -max(column.height for column in columns) - 2 * GAP)


def _into_crown(crown: Piece, columns: Sequence[Piece]) -> Iterator[Arrow]:
    """The lines from the top of every column."""
    assert crown.entry is not None
    entry = crown.entry
    for column in columns:
        assert column.exit is not None
        leaves = column.exit
        points = (
            (leaves.x, leaves.y),
            (leaves.x, entry.y + GAP),
            (entry.x, entry.y + GAP),
            (entry.x, entry.y),
        )
        yield Arrow(points, leaves.box, entry.box)


def _edges(column: Piece) -> tuple[float, float]:
    """Where a column begins and ends."""
    assert column.entry is not None
    return column.entry.x - column.left, column.entry.x + column.right


def _from_encoder(encoder: Piece, decoder: Piece) -> Iterator[Arrow]:
    """The lines from the top of the encoder to every attention that reads it."""
    leaves, trunk = encoder.exit, _edges(encoder)[1] + MARGIN
    assert leaves is not None
    turn = -encoder.height - GAP / 2
    for inlet in decoder.inlets:
        if inlet.kind == "encoder":
            x, y = inlet.port.x, inlet.port.y
            points = ((leaves.x, leaves.y), (leaves.x, turn), (trunk, turn), (trunk, y), (x, y))
            yield Arrow(points, leaves.box, inlet.port.box, "encoder", head=False)


def _ties(diagram: Diagram, boxes: Sequence[Box], columns: Sequence[Piece]) -> Iterator[Arrow]:
    """The lines between parts that share a weight: across from the encoder, or around a column."""
    by_part = {box.part: box for box in boxes if box.part is not None}
    (left, _), (_, right) = _edges(columns[0]), _edges(columns[-1])
    across = _edges(columns[-1])[0] - MARGIN / 2
    for number, (owner, user) in enumerate(diagram.ties):
        first, second = by_part[owner], by_part[user]
        out = MARGIN * (0.8 + 0.4 * number)
        if first in columns[0].boxes and second not in columns[0].boxes:
            points = _around(first, second, across, ends=(1, 0))
        elif len(columns) == 1:
            points = _around(first, second, left - out, ends=(0, 0))
        else:
            points = _around(first, second, right + out, ends=(1, 1))
        yield Arrow(points, first.id, second.id, "tie", head=False)


def _around(first: Box, second: Box, x: float, ends: tuple[int, int]) -> tuple[Point, ...]:
    """A line between boxes by way of x, from and to their left edges, or right edges where 1 is given."""
    start, end = (
        (box.x + box.width * side, box.middle[1]) for box, side in zip((first, second), ends, strict=True)
    )
    return (start, end) if start[1] == end[1] else (start, (x, start[1]), (x, end[1]), end)


def _legend(diagram: Diagram, boxes: Sequence[Box]) -> Iterator[str]:
    """The legend: letters, lines, numbers and signs."""
    yield from (f"{letter} {meaning}" for letter, meaning in diagram.symbols.items())
    yield "numbers at the right of a part: its parameters in one layer"
    if any(text.text == "∥" for box in boxes for text in box.texts):
        yield "∥ concatenated"
    if diagram.ties:
        yield "dashed: the same weights"


def _titled(
    diagram: Diagram, boxes: Sequence[Box], arrows: Sequence[Arrow], left: float, right: float, top: float
) -> Scene:
    """The scene with title and legend, moved into view."""
    name, *changes = diagram.name.split("+")  # a spec that --set changed is named after what changed
    inner = max(right - left, text_width(name, LARGE, bold=True), LEAST_WIDTH)
    count = f"{parameter_text(diagram.parameters)} parameters ({diagram.parameters:,})"
    facts = [*lines_of(changes, inner, FACTS), *lines_of([count, *diagram.facts], inner, FACTS)]
    legend = lines_of(_legend(diagram, boxes), inner, TINY)
    dx = MARGIN + (inner - (right - left)) / 2 - left
    dy = MARGIN + LARGE + 30 + 17 * len(facts) - top
    texts = [Text(MARGIN, MARGIN + LARGE - 4, name, LARGE, bold=True)]
    texts += [
        Text(MARGIN, MARGIN + LARGE + 16 + 17 * i, line, FACTS, quiet=True) for i, line in enumerate(facts)
    ]
    texts += [Text(MARGIN, dy + 30 + LINE * i, line, TINY, quiet=True) for i, line in enumerate(legend)]
    return Scene(
        diagram.name,
        "; ".join([count, *diagram.facts]),
        diagram.parameters,
        round(inner + 2 * MARGIN, 1),
        round(dy + 24 + LINE * len(legend) + MARGIN / 2, 1),
        tuple(box.moved(dx, dy) for box in boxes),
        tuple(arrow.moved(dx, dy) for arrow in arrows),
        tuple(texts),
    )
