"""One column of a drawing: its elements, stacked upwards.

The stream runs upwards through the centre.  A skip connection runs around its branch on the left, or on the right in a decoder
with an encoder, whose lines enter on the left.  Parts added from the side stand on the right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from zoo.drawing import pieces
from zoo.drawing.boxes import (
    GAP,
    LINE,
    MARGIN,
    MEDIUM,
    NARROW,
    PILE,
    RADIUS,
    SIDE,
    SMALL,
    TINY,
    WIDE,
    BoxLayout,
)
from zoo.drawing.diagram import (
    AttentionPart,
    DiagramColumn,
    DiagramFrame,
    Element,
    Inserted,
    Joined,
    Label,
    Part,
    Sum,
    Way,
)
from zoo.drawing.pieces import Inlet, Piece, Port
from zoo.drawing.scene import Arrow, Box, Text
from zoo.drawing.text import fitted, text_width


class ColumnLayout(BoxLayout):
    """Lays out one column; skip connections run on the right if the column reads an encoder."""

    def __init__(self, column: DiagramColumn, *, reads_encoder: bool) -> None:
        super().__init__(column.name)
        self._column = column
        self._mirrored = reads_encoder

    def piece(self) -> Piece:
        """The whole column, with the parts added to scores on its right."""
        column = self._pile(self._column.way)
        scores = [inlet for inlet in column.inlets if inlet.kind == "scores"]
        return self._with_scores(column, scores) if scores else column

    def _pile(self, way: Iterable[Element]) -> Piece:
        return pieces.piled([self._element(element) for element in way], GAP)

    def _element(self, element: Element) -> Piece:
        match element:
            case AttentionPart():
                return self.attention(element)
            case Part():
                return self._part(element)
            case Sum():
                return self._sum(element)
            case Joined():
                return self._joined(element)
            case Inserted():
                return self._inserted(element)
            case DiagramFrame():
                return self._frame(element)
            case Label():
                return self._label(element)

    def _part(self, part: Part) -> Piece:
        wide = part.role not in ("norm", "other") or bool(part.details)
        box = self.text_box(part, WIDE if wide else NARROW)
        box = box.moved(-box.width / 2, -box.height)
        entry, exit_ = Port(box.id, 0, 0), Port(box.id, 0, -box.height)
        pile = PILE if box.many else 0.0
        half = box.width / 2
        return Piece(half, half + pile, box.height + pile, (box,), entry=entry, exit=exit_)

    def _sum(self, element: Sum) -> Piece:
        """Branches side by side into their sum or the part that reads them, and the skip connection around them."""
        around = element.ways.count(())
        branches = [self._pile(way) for way in self._ordered([way for way in element.ways if way])]
        if not branches:
            branches, around = [Piece(0, 0, 0)], around - 1
        start, entry = self.point(0, 0)
        below = -(2 * GAP + max(piece.height for piece in branches))
        join = element.join
        box = self.text_box(join, NARROW) if isinstance(join, Part) else self.sign(RADIUS, RADIUS, join)
        sign = box.moved(-box.width / 2, below - box.height)
        top = below - box.height / 2
        placed = [(x, piece.moved(0, -GAP)) for x, piece in pieces.beside(branches, 2 * GAP)]
        arrows = []
        for x, piece in placed:
            begin, end = piece.entry or Port(sign.id, 0, below), piece.exit
            corner = [(x, 0.0)] if x else []
            arrows.append(Arrow(((0, 0), *corner, (x, begin.y)), start.id, begin.box, head=begin.takes_head))
            if end is not None:
                arrows.append(_into(sign, end, x, top))
        left = max(box.width / 2, *(piece.left - x for x, piece in placed))
        right = max(box.width / 2, *(x + piece.right for x, piece in placed))
        for _ in range(around):
            left, right = (left, right + GAP) if self._mirrored else (left + GAP, right)
            x, side = (right, box.width / 2) if self._mirrored else (-left, -box.width / 2)
            arrows.append(Arrow(((0, 0), (x, 0), (x, top), (side, top)), start.id, sign.id))
        return Piece(
            left + 2,
            right + 2,
            box.height - below,
            (start, *(box for _, piece in placed for box in piece.boxes), sign),
            (*(arrow for _, piece in placed for arrow in piece.arrows), *arrows),
            tuple(inlet for _, piece in placed for inlet in piece.inlets),
            entry,
            Port(sign.id, 0, sign.y),
        )

    def _ordered(self, ways: list[Way]) -> list[Way]:
        """Branches from left to right: those that read the encoder first, those with parts at their side last."""

        def place(way: Way) -> int:
            attentions = [element for element in way if isinstance(element, AttentionPart)]
            if any(attention.reads_encoder for attention in attentions):
                return 0
            return 2 if any(attention.on_scores is not None for attention in attentions) else 1

        return sorted(ways, key=place)

    def _joined(self, element: Joined) -> Piece:
        """A sign on the stream, and beside it the part that joins there."""
        box = self.text_box(element.part, SIDE)
        middle = -box.height / 2
        sign = self.sign(0, middle, element.sign)
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

    def _inserted(self, element: Inserted) -> Piece:
        """A sign on the stream, into which another column leads, and text beside it."""
        middle = -RADIUS - GAP / 2
        sign = self.sign(0, middle, "\u21e5")
        text = Text(RADIUS + 6, middle + 4, element.text, SMALL, quiet=True)
        box = Box(self.id(), "text", RADIUS + 5, middle - 10, text.width + 2, 14, (text,))
        return Piece(
            RADIUS + GAP,
            RADIUS + 8 + text.width,
            2 * RADIUS + GAP,
            (sign, box),
            inlets=(Inlet("encoder", Port(sign.id, -RADIUS, middle)),),
            entry=Port(sign.id, 0, middle + RADIUS),
            exit=Port(sign.id, 0, middle - RADIUS),
        )

    def _frame(self, element: DiagramFrame) -> Piece:
        """A frame with its label at the top left and its note at the top right, on either side of the stream."""
        inner = self._pile(element.way)
        plain, around = WIDE / 2 + PILE + 2, WIDE / 2 + PILE + 2 + GAP  # equal widths for most frames
        least = (plain, around) if self._mirrored else (around, plain)
        label_room = min(math.ceil(text_width(element.label, MEDIUM, bold=True)), WIDE) + 9
        left, right = max(inner.left, least[0], label_room) + 12, max(inner.right, least[1]) + 12
        height = 14 + inner.height + 30
        label = Text(
            10 - left, 18 - height, fitted(element.label, left - 20, MEDIUM, bold=True), MEDIUM, bold=True
        )
        note = Text(
            right - 10, 18 - height, fitted(element.note, right - 20, SMALL), SMALL, "end", quiet=True
        )
        box = Box(self.id(), "frame", -left, -height, left + right, height, (label, note), frame=element)
        inner = inner.moved(0, -14)
        return Piece(
            left, right, height, (box, *inner.boxes), inner.arrows, inner.inlets, inner.entry, inner.exit
        )

    def _label(self, element: Label) -> Piece:
        """Text below or above the stream, or beside it."""
        if element.location == "beside":
            text = Text(8, -3, element.shape, TINY, quiet=True)
            box = Box(self.id(), "text", 7, -13, text.width + 2, 13, (text,))
            return Piece(0, 9 + text.width, 13, (box,))
        if element.location == "out":
            return self._out(element)
        texts = [Text(0, 13, element.text, MEDIUM, "middle", bold=True)] if element.text else []
        if element.shape:
            texts.append(Text(0, 13 + LINE * len(texts), element.shape, TINY, "middle", quiet=True))
        half = max(text.width for text in texts) / 2 + 4
        box = Box(self.id(), "text", -half, 0, 2 * half, 3 + LINE * len(texts), tuple(texts))
        box = box.moved(0, -box.height)
        entry, exit_ = Port(box.id, 0, 0), Port(box.id, 0, box.y)
        return Piece(half, half, box.height, (box,), entry=entry, exit=exit_)

    def _out(self, element: Label) -> Piece:
        """A line from the stream to an output of the model."""
        texts = (
            Text(4, 13, element.text, MEDIUM, bold=True),
            Text(4, 13 + LINE, element.shape, TINY, quiet=True),
        )
        width, height = max(text.width for text in texts) + 8, 3 + 2 * LINE
        meeting, port = self.point(0, -height / 2)
        box = Box(self.id(), "text", 0, 0, width, height, texts).moved(WIDE / 4, -height)
        arrow = Arrow(((0, port.y), (box.x, port.y)), meeting.id, box.id)
        return Piece(0, box.x + width, height, (meeting, box), (arrow,), entry=port, exit=port)

    def _with_scores(self, column: Piece, scores: Sequence[Inlet]) -> Piece:
        """The column with the parts added to scores on its right, each once, with lines to every use."""
        boxes, arrows = list(column.boxes), list(column.arrows)
        gutter, right = column.right + MARGIN / 2, column.right
        for part in dict.fromkeys(inlet.part for inlet in scores):
            assert part is not None
            first, *others = (inlet.port for inlet in scores if inlet.part == part)
            box = self.text_box(part, SIDE)
            box = box.moved(column.right + 1.5 * MARGIN, first.y - box.height / 2)
            boxes.append(box)
            right = max(right, box.x + box.width)
            if not others:
                arrows.append(Arrow(((box.x, first.y), (first.x, first.y)), box.id, first.box, "scores"))
                continue
            meeting, port = self.point(gutter, first.y)
            boxes.append(meeting)
            arrows.append(
                Arrow(((box.x, first.y), (gutter, first.y)), box.id, port.box, "scores", head=False)
            )
            arrows.append(Arrow(((gutter, first.y), (first.x, first.y)), port.box, first.box, "scores"))
            for other in others:
                points = ((gutter, first.y), (gutter, other.y), (other.x, other.y))
                arrows.append(Arrow(points, port.box, other.box, "scores"))
        return Piece(
            column.left, right, column.height,
            tuple(boxes), tuple(arrows), column.inlets, column.entry, column.exit,
        )  # fmt: skip


def _into(sign: Box, end: Port, x: float, top: float) -> Arrow:
    """From the top of a branch into a sign or part, from below or from the side."""
    half = sign.width / 2
    if abs(x) < half:
        return Arrow(((x, end.y), (x, sign.y + sign.height)), end.box, sign.id)
    side = half if x > 0 else -half
    return Arrow(((x, end.y), (x, top), (side, top)), end.box, sign.id)
