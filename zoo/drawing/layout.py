"""Places for what a diagram shows.

The stream runs upwards through the middle of its column.  A sum with the stream itself runs around its branch: on the left, or
in a decoder that reads an encoder on the right, as what comes from there enters on the left.  What is added from the
side stands on the right.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from zoo.drawing import pieces
from zoo.drawing.diagram import (
    AttentionPart,
    Column,
    Diagram,
    Element,
    ExpertsPart,
    Frame,
    Joined,
    Label,
    Part,
    Sum,
    Way,
)
from zoo.drawing.pieces import Inlet, Piece, Port
from zoo.drawing.scene import Arrow, Box, Point, Scene, Text
from zoo.drawing.text import fitted, lines_of, text_width

WIDE, NARROW, SIDE = 286.0, 200.0, 168.0
"""The widths of boxes: parts, small parts such as norms, and what stands beside the stream."""
GAP, MARGIN, RADIUS = 18.0, 26.0, 9.0
LARGE, MEDIUM, SMALL, TINY = 20.0, 13.0, 11.0, 10.5
LINE = 15.0
INSET = 12.0
QUERY, KEY, VALUE = -92.0, 0.0, 92.0
"""Where queries, keys and values enter an attention, from its middle."""
CROSS_VALUE, CROSS_KEY = -112.0, -66.0


def lay_out(diagram: Diagram) -> Scene:
    """A scene with everything in its place."""
    columns = [_ColumnLayout(column, len(diagram.columns) > 1) for column in diagram.columns]
    placed, x = [], 0.0
    for column, layout in zip(diagram.columns, columns, strict=True):
        piece = layout.piece(column.way)
        x += piece.left
        placed.append(piece.moved(x, 0))
        x += piece.right + 2 * MARGIN
    width = x - 2 * MARGIN
    boxes = [box for piece in placed for box in piece.boxes]
    arrows = [arrow for piece in placed for arrow in piece.arrows]
    if len(placed) == 2:
        arrows += _from_encoder(placed[0], placed[1], placed[0].right + _middle(placed[0]) + MARGIN)
    ties = list(_ties(diagram, boxes, placed))
    arrows += ties
    left = min([0.0, *(x for arrow in ties for x, _ in arrow.points)])
    right = max([width, *(x for arrow in ties for x, _ in arrow.points)])
    top = min([-max(piece.height for piece in placed), *(y for arrow in arrows for _, y in arrow.points)])
    return _titled(diagram, boxes, arrows, (left, right, top))


def _middle(piece: Piece) -> float:
    assert piece.entry is not None
    return piece.entry.x


class _ColumnLayout:
    """Lays out one column.  ``mirrored`` puts sums with the stream itself on the right."""

    def __init__(self, column: Column, in_pair: bool) -> None:
        self._name = column.name
        self._mirrored = in_pair and column.name == "decoder"
        self._numbers = itertools.count(1)

    def piece(self, way: Way) -> Piece:
        """The whole column, with what is added to scores on its right."""
        column = self._pile(way, GAP)
        scores = [inlet for inlet in column.inlets if inlet.kind == "scores"]
        return self._with_scores(column, scores) if scores else column

    def _id(self) -> str:
        return f"{self._name}-{next(self._numbers)}"

    def _pile(self, way: Iterable[Element], gap: float) -> Piece:
        return pieces.piled([self._element(element) for element in way], gap)

    def _element(self, element: Element) -> Piece:
        match element:
            case AttentionPart():
                return self._attention(element)
            case Part():
                return self._part(element)
            case Sum():
                return self._sum(element)
            case Joined():
                return self._joined(element)
            case Frame():
                return self._frame(element)
            case Label():
                return self._label(element)

    def _point(self, x: float, y: float) -> tuple[Box, Port]:
        box = Box(self._id(), "point", x, y, 0, 0)
        return box, Port(box.id, x, y, takes_head=False)

    def _sign(self, x: float, y: float, sign: str) -> Box:
        """A circle whose middle is at a point."""
        text = Text(x, y + 5, sign, 15, "middle", bold=True)
        return Box(self._id(), "sum", x - RADIUS, y - RADIUS, 2 * RADIUS, 2 * RADIUS, (text,))

    def _part(self, part: Part) -> Piece:
        wide = part.role not in ("norm", "other") or bool(part.details)
        box = self._text_box(part, WIDE if wide else NARROW)
        box = box.moved(-box.width / 2, -box.height)
        entry, exit_ = Port(box.id, 0, 0), Port(box.id, 0, -box.height)
        half = box.width / 2 + (6 if box.many else 0)
        return Piece(half, half, box.height + (6 if box.many else 0), (box,), entry=entry, exit=exit_)

    def _text_box(self, part: Part, width: float) -> Box:
        """The box of a part with its title, its parameters on the right, and its details; its corner is at (0, 0)."""
        room = width - 2 * INSET
        count_width = text_width(part.count, SMALL)
        beside_title = text_width(part.title, MEDIUM, bold=True) + count_width + 10 <= room
        title_room = room - count_width - 10 if beside_title else room
        texts = [Text(INSET, 19, fitted(part.title, title_room, MEDIUM, bold=True), MEDIUM, bold=True)]
        count = Text(width - INSET, 19, fitted(part.count, room, SMALL), SMALL, "end", quiet=True)
        lines = lines_of(part.details, room, SMALL)
        texts += [Text(INSET, 19 + LINE * (i + 1), line, SMALL) for i, line in enumerate(lines)]
        rows = len(lines)
        if not beside_title:
            rows += not lines or text_width(lines[-1], SMALL) + count_width + 10 > room
            count = count.moved(0, LINE * rows)
        if part.count:
            texts.append(count)
        height = 28 + LINE * rows
        many = isinstance(part, ExpertsPart)
        return Box(self._id(), "box", 0, 0, width, height, tuple(texts), part.role, part, many)

    def _pill(self, part: Part, left: float, right: float, bottom: float) -> Box:
        """A small box across lines."""
        first = " ".join([part.title, *part.details[:1]])
        lines = lines_of(
            [first, *part.details[1:], *([part.count] if part.count else [])], right - left - 12, TINY
        )
        height = 8 + 13 * len(lines)
        texts = tuple(
            Text((left + right) / 2, bottom - height + 14 + 13 * i, line, TINY, "middle")
            for i, line in enumerate(lines)
        )
        return Box(self._id(), "pill", left, bottom - height, right - left, height, texts, part.role, part)

    def _attention(self, part: AttentionPart) -> Piece:
        """An attention with its queries, keys and values, and what happens to them on the way."""
        start, entry = self._point(0, 0)
        boxes, arrows, inlets = [start], [], []
        from_encoder = part.reads_encoder
        query, key, value = (0.0, CROSS_KEY, CROSS_VALUE) if from_encoder else (QUERY, KEY, VALUE)
        source = entry
        if from_encoder:
            meeting, source = self._point(value, -10)
            boxes.append(meeting)
            inlets.append(Inlet("encoder", source))
        lines: dict[float, Port] = {}
        starts = {query: entry, key: source, value: source}
        bottom = -24.0 if part.on_queries_keys else -8.0
        for each in part.on_queries_keys:
            pill = self._pill(each, min(query, key) - 32, max(query, key) + 32, bottom)
            boxes.append(pill)
            for x in (query, key):
                arrows.append(
                    _risen(lines.get(x) or starts[x], x, Port(pill.id, x, bottom, takes_head=False))
                )
                lines[x] = Port(pill.id, x, pill.y)
            bottom = pill.y - 8
        box = self._text_box(part, WIDE)
        bottom -= 18
        box = box.moved(-WIDE / 2, bottom - box.height)
        for letter, x in (("Q", query), ("K", key), ("V", value)):
            arrows.append(_risen(lines.get(x) or starts[x], x, Port(box.id, x, bottom)))
            text = Text(x + 6, bottom + 13, letter, TINY, quiet=True)
            boxes.append(Box(self._id(), "text", x + 5, bottom + 4, text.width + 2, 11, (text,)))
        boxes.append(box)
        if part.on_scores is not None:
            inlets.append(Inlet("scores", Port(box.id, WIDE / 2, box.middle[1]), part.on_scores))
        return Piece(
            WIDE / 2,
            WIDE / 2,
            -box.y,
            tuple(boxes),
            tuple(arrows),
            tuple(inlets),
            entry,
            Port(box.id, 0, box.y),
        )

    def _sum(self, element: Sum) -> Piece:
        """Ways side by side into a sign, and the stream itself around them."""
        around = element.ways.count(())
        branches = [self._pile(way, GAP) for way in self._ordered([way for way in element.ways if way])]
        if not branches:
            branches, around = [Piece(0, 0, 0)], around - 1
        start, entry = self._point(0, 0)
        top = -(GAP + max(piece.height for piece in branches) + GAP + RADIUS)
        sign = self._sign(0, top, "+")
        placed = [(x, piece.moved(0, -GAP)) for x, piece in pieces.beside(branches, 2 * GAP)]
        arrows = []
        for x, piece in placed:
            begin, end = piece.entry or Port(sign.id, 0, top + RADIUS), piece.exit
            corner = [(x, 0.0)] if x else []
            arrows.append(Arrow(((0, 0), *corner, (x, begin.y)), start.id, begin.box, head=begin.takes_head))
            if end is not None:
                arrows.append(_into_sign(end, x, sign, top))
        left = max(-(x - piece.left) for x, piece in placed)
        right = max(x + piece.right for x, piece in placed)
        for _ in range(around):
            left, right = (left, right + GAP) if self._mirrored else (left + GAP, right)
            x, side = (right, RADIUS) if self._mirrored else (-left, -RADIUS)
            arrows.append(Arrow(((0, 0), (x, 0), (x, top), (side, top)), start.id, sign.id))
        return Piece(
            left + 2,
            right + 2,
            -(top - RADIUS),
            (start, *(box for _, piece in placed for box in piece.boxes), sign),
            (*(arrow for _, piece in placed for arrow in piece.arrows), *arrows),
            tuple(inlet for _, piece in placed for inlet in piece.inlets),
            entry,
            Port(sign.id, 0, top - RADIUS),
        )

    def _ordered(self, ways: list[Way]) -> list[Way]:
        """Ways from left to right: what reads the encoder first, what takes something from the side last."""

        def place(way: Way) -> int:
            attentions = [each for each in way if isinstance(each, AttentionPart)]
            if any(each.reads_encoder for each in attentions):
                return 0
            return 2 if any(each.on_scores is not None for each in attentions) else 1

        return sorted(ways, key=place)

    def _joined(self, element: Joined) -> Piece:
        """A sign on the stream, and beside it what joins there."""
        box = self._text_box(element.part, SIDE)
        middle = -box.height / 2
        sign = self._sign(0, middle, element.sign)
        box = box.moved(RADIUS + 1.5 * GAP, -box.height)
        arrow = Arrow(((box.x, middle), (RADIUS, middle)), box.id, sign.id)
        return Piece(
            RADIUS,
            box.x + box.width,
            box.height,
            (sign, box),
            (arrow,),
            entry=Port(sign.id, 0, middle + RADIUS),
            exit=Port(sign.id, 0, middle - RADIUS),
        )

    def _frame(self, element: Frame) -> Piece:
        """A frame with its label at the top left and its note at the top right, on either side of the stream."""
        inner = self._pile(element.way, GAP)
        left, right = max(inner.left, WIDE / 2) + 14, max(inner.right, WIDE / 2) + 14
        height = 14 + inner.height + 30
        label = Text(
            10 - left, 18 - height, fitted(element.label, left - 20, MEDIUM, bold=True), MEDIUM, bold=True
        )
        note = Text(
            right - 10, 18 - height, fitted(element.note, right - 20, SMALL), SMALL, "end", quiet=True
        )
        box = Box(self._id(), "frame", -left, -height, left + right, height, (label, note))
        inner = inner.moved(0, -14)
        return Piece(
            left, right, height, (box, *inner.boxes), inner.arrows, inner.inlets, inner.entry, inner.exit
        )

    def _label(self, element: Label) -> Piece:
        """Text below or above the stream, or beside it."""
        if element.place == "beside":
            text = Text(8, -3, element.shape, TINY, quiet=True)
            box = Box(self._id(), "text", 7, -13, text.width + 2, 13, (text,))
            return Piece(0, 9 + text.width, 13, (box,))
        texts = [Text(0, 13, element.text, MEDIUM, "middle", bold=True)] if element.text else []
        if element.shape:
            texts.append(Text(0, 13 + LINE * len(texts), element.shape, TINY, "middle", quiet=True))
        half = max(text.width for text in texts) / 2 + 4
        box = Box(self._id(), "text", -half, 0, 2 * half, 3 + LINE * len(texts), tuple(texts))
        box = box.moved(0, -box.height)
        entry, exit_ = Port(box.id, 0, 0), Port(box.id, 0, box.y)
        return Piece(half, half, box.height, (box,), entry=entry, exit=exit_)

    def _with_scores(self, column: Piece, scores: Sequence[Inlet]) -> Piece:
        """The column with what is added to scores on its right, each part once, and lines from it to every use."""
        boxes, arrows = list(column.boxes), list(column.arrows)
        gutter = column.right + MARGIN / 2
        for part in dict.fromkeys(inlet.part for inlet in scores):
            assert part is not None
            first, *others = (inlet.port for inlet in scores if inlet.part == part)
            box = self._text_box(part, SIDE)
            box = box.moved(column.right + 1.5 * MARGIN, first.y - box.height / 2)
            boxes.append(box)
            if not others:
                arrows.append(Arrow(((box.x, first.y), (first.x, first.y)), box.id, first.box, "scores"))
                continue
            meeting, port = self._point(gutter, first.y)
            boxes.append(meeting)
            arrows.append(
                Arrow(((box.x, first.y), (gutter, first.y)), box.id, port.box, "scores", head=False)
            )
            arrows.append(Arrow(((gutter, first.y), (first.x, first.y)), port.box, first.box, "scores"))
            for other in others:
                points = ((gutter, first.y), (gutter, other.y), (other.x, other.y))
                arrows.append(Arrow(points, port.box, other.box, "scores"))
        return Piece(
            column.left, column.right + 1.5 * MARGIN + SIDE, column.height,
            tuple(boxes), tuple(arrows), column.inlets, column.entry, column.exit,
        )  # fmt: skip


def _risen(source: Port, x: float, target: Port) -> Arrow:
    """An arrow that goes sideways and then up."""
    corner = [(x, source.y)] if source.x != x else []
    return Arrow(
        ((source.x, source.y), *corner, (x, target.y)), source.box, target.box, head=target.takes_head
    )


def _into_sign(end: Port, x: float, sign: Box, top: float) -> Arrow:
    """From the top of a way up, and into the sign from the side, or from below."""
    if x == 0:
        return Arrow(((0, end.y), (0, top + RADIUS)), end.box, sign.id)
    side = RADIUS if x > 0 else -RADIUS
    return Arrow(((x, end.y), (x, top), (side, top)), end.box, sign.id)


def _from_encoder(encoder: Piece, decoder: Piece, trunk: float) -> list[Arrow]:
    """The lines from the top of the encoder to every attention that reads it."""
    leaves = encoder.exit
    assert leaves is not None
    turn = -encoder.height - GAP / 2
    arrows = []
    for inlet in decoder.inlets:
        if inlet.kind == "encoder":
            port = inlet.port
            points = (
                (leaves.x, leaves.y),
                (leaves.x, turn),
                (trunk, turn),
                (trunk, port.y),
                (port.x, port.y),
            )
            arrows.append(Arrow(points, leaves.box, port.box, "encoder", head=False))
    return arrows


def _ties(diagram: Diagram, boxes: Sequence[Box], columns: Sequence[Piece]) -> Iterable[Arrow]:
    """The lines between parts with the same weight: across from the encoder, or around the outside of a column."""
    by_part = {box.part: box for box in boxes if box.part is not None}
    for number, (owner, user) in enumerate(diagram.ties):
        first, second = by_part[owner], by_part[user]
        if first.id.partition("-")[0] != second.id.partition("-")[0]:
            start, end = (first.x + first.width, first.middle[1]), (second.x, second.middle[1])
            trunk = columns[1].moved(0, 0)
            middle = _middle(trunk) - trunk.left - MARGIN / 2
            points: tuple[Point, ...] = (start, (middle, start[1]), (middle, end[1]), end)
            points = (start, end) if start[1] == end[1] else points
        else:
            last = columns[-1]
            out = MARGIN * (0.8 + 0.4 * number)
            if len(columns) == 1:
                x = _middle(last) - last.left - out
                points = (
                    (first.x, first.middle[1]),
                    (x, first.middle[1]),
                    (x, second.middle[1]),
                    (second.x, second.middle[1]),
                )
            else:
                x = _middle(last) + last.right + out
                ends = [(box.x + box.width, box.middle[1]) for box in (first, second)]
                points = (ends[0], (x, ends[0][1]), (x, ends[1][1]), ends[1])
        yield Arrow(points, first.id, second.id, "tie", head=False)


def _titled(
    diagram: Diagram, boxes: Sequence[Box], arrows: Sequence[Arrow], edges: tuple[float, float, float]
) -> Scene:
    """The scene with its title above and its legend below, moved to where all of it is in view."""
    left, right, top = edges
    title_width = text_width(diagram.name, LARGE, bold=True)
    inner = max(right - left, title_width, 440.0)
    from zoo.drawing.wording import count_text

    count = f"{count_text(diagram.parameters)} parameters ({diagram.parameters:,})"
    facts = lines_of([count, *diagram.facts], inner, 12)
    said = [f"{letter} {meaning}" for letter, meaning in diagram.symbols.items()]
    said += ["numbers at the right of a part: its parameters in one layer"]
    if diagram.ties:
        said.append("dashed: the same weights")
    legend = lines_of(said, inner, TINY)
    head = LARGE + 8 + 17 * len(facts) + 22
    width, height = inner + 2 * MARGIN, MARGIN + head - top + 24 + LINE * len(legend) + MARGIN / 2
    dx, dy = MARGIN + (inner - (right - left)) / 2 - left, MARGIN + head - top
    texts = [Text(MARGIN, MARGIN + LARGE - 4, diagram.name, LARGE, bold=True)]
    texts += [
        Text(MARGIN, MARGIN + LARGE + 16 + 17 * i, line, 12, quiet=True) for i, line in enumerate(facts)
    ]
    texts += [Text(MARGIN, dy + 30 + LINE * i, line, TINY, quiet=True) for i, line in enumerate(legend)]
    return Scene(
        diagram.name,
        "; ".join([count, *diagram.facts]),
        round(width, 1),
        round(height, 1),
        tuple(box.moved(dx, dy) for box in boxes),
        tuple(arrow.moved(dx, dy) for arrow in arrows),
        tuple(texts),
    )
