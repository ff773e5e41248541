"""One column of a drawing: the pieces of its elements, one above the other.

The stream runs upwards through the middle.  A sum with the stream itself runs around its branch: on the left, or in a decoder
that reads an encoder on the right, as what comes from there enters on the left.  What is added from the side stands on
the right.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from zoo.drawing import pieces
from zoo.drawing.diagram import (
    AttentionPart,
    Column,
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
from zoo.drawing.scene import Arrow, Box, Text
from zoo.drawing.text import fitted, lines_of, text_width

WIDE, NARROW, SIDE = 286.0, 200.0, 184.0
"""The widths of boxes: parts, small parts such as norms, and what stands beside the stream."""
GAP, MARGIN, RADIUS = 18.0, 26.0, 9.0
MEDIUM, SMALL, TINY = 13.0, 11.0, 10.5
"""The sizes of titles, of details, and of what stands on lines."""
LINE, INSET, PILE = 15.0, 12.0, 6.0
"""The height of a line, the room at its ends in a box, and how far the pile behind a mixture of experts reaches."""
QUERY, KEY, VALUE = -92.0, 0.0, 92.0
"""Where queries, keys and values enter an attention, from its middle."""
CROSS_VALUE, CROSS_KEY = -112.0, -66.0


class ColumnLayout:
    """Lays out one column; sums with the stream itself go around on the right where it stands beside an encoder."""

    def __init__(self, column: Column, *, reads_encoder: bool) -> None:
        self._column = column
        self._mirrored = reads_encoder
        self._numbers = itertools.count(1)

    def piece(self) -> Piece:
        """The whole column, with what is added to scores on its right."""
        column = self._pile(self._column.way)
        scores = [inlet for inlet in column.inlets if inlet.kind == "scores"]
        return self._with_scores(column, scores) if scores else column

    def _id(self) -> str:
        return f"{self._column.name}-{next(self._numbers)}"

    def _pile(self, way: Iterable[Element]) -> Piece:
        return pieces.piled([self._element(element) for element in way], GAP)

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
        pile = PILE if box.many else 0.0
        half = box.width / 2
        return Piece(half, half + pile, box.height + pile, (box,), entry=entry, exit=exit_)

    def _text_box(self, part: Part, width: float) -> Box:
        """The box of a part with its title, its parameters on the right, and its details; its corner is at (0, 0)."""
        room = width - 2 * INSET
        count_width = text_width(part.count, SMALL)
        beside_title = text_width(part.title, MEDIUM, bold=True) + count_width + 10 <= room
        title_room = room - count_width - 10 if beside_title else room
        texts = [Text(INSET, 19, fitted(part.title, title_room, MEDIUM, bold=True), MEDIUM, bold=True)]
        count = Text(width - INSET, 19, fitted(part.count, room, SMALL), SMALL, "end")
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
        room = right - left - 12
        first = " ".join([part.title, *part.details[:1]])
        words = [first, *part.details[1:]] if text_width(first, TINY) <= room else [part.title, *part.details]
        lines = lines_of([*words, *([part.count] if part.count else [])], room, TINY)
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
        branches = [self._pile(way) for way in self._ordered([way for way in element.ways if way])]
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
        inner = self._pile(element.way)
        plain, around = WIDE / 2 + PILE + 2, WIDE / 2 + PILE + 2 + GAP  # so that most frames are as wide
        least = (plain, around) if self._mirrored else (around, plain)
        left, right = max(inner.left, least[0]) + 12, max(inner.right, least[1]) + 12
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
        if element.place == "out":
            return self._out(element)
        texts = [Text(0, 13, element.text, MEDIUM, "middle", bold=True)] if element.text else []
        if element.shape:
            texts.append(Text(0, 13 + LINE * len(texts), element.shape, TINY, "middle", quiet=True))
        half = max(text.width for text in texts) / 2 + 4
        box = Box(self._id(), "text", -half, 0, 2 * half, 3 + LINE * len(texts), tuple(texts))
        box = box.moved(0, -box.height)
        entry, exit_ = Port(box.id, 0, 0), Port(box.id, 0, box.y)
        return Piece(half, half, box.height, (box,), entry=entry, exit=exit_)

    def _out(self, element: Label) -> Piece:
        """A line from the stream to what goes out of the model there."""
        texts = (
            Text(4, 13, element.text, MEDIUM, bold=True),
            Text(4, 13 + LINE, element.shape, TINY, quiet=True),
        )
        width, height = max(text.width for text in texts) + 8, 3 + 2 * LINE
        meeting, port = self._point(0, -height / 2)
        box = Box(self._id(), "text", 0, 0, width, height, texts).moved(WIDE / 4, -height)
        arrow = Arrow(((0, port.y), (box.x, port.y)), meeting.id, box.id)
        return Piece(0, box.x + width, height, (meeting, box), (arrow,), entry=port, exit=port)

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
