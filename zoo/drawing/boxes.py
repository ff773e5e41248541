"""Boxes with text, signs on lines, and attentions: what the columns of a drawing are made of."""

from __future__ import annotations

import itertools
import math

from zoo.drawing.diagram import AttentionPart, ExpertsPart, Part
from zoo.drawing.pieces import Inlet, Piece, Port
from zoo.drawing.scene import Arrow, Box, Text
from zoo.drawing.text import fitted, lines_of, text_width

WIDE, NARROW, SIDE = 286.0, 200.0, 184.0
"""The widths of boxes: parts, small parts such as norms, and parts beside the stream."""
GAP, MARGIN, RADIUS = 18.0, 26.0, 9.0
MEDIUM, SMALL, TINY = 13.0, 11.0, 10.5
"""Font sizes of titles, of details, and of text on lines."""
LINE, INSET, PILE = 15.0, 12.0, 6.0
"""The height of a line of text, its inset in a box, and the depth of the pile behind a mixture of experts."""
QUERY, KEY, VALUE = -92.0, 0.0, 92.0
"""Where queries, keys and values enter an attention, relative to its centre."""
CROSS_VALUE, CROSS_KEY = -112.0, -66.0


class BoxLayout:
    """Makes boxes with identifiers that begin with the name of their column."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers = itertools.count(1)

    def id(self) -> str:
        """A new identifier."""
        return f"{self._name}-{next(self._numbers)}"

    def point(self, x: float, y: float) -> tuple[Box, Port]:
        """A point where lines meet."""
        box = Box(self.id(), "point", x, y, 0, 0)
        return box, Port(box.id, x, y, takes_head=False)

    def sign(self, x: float, y: float, sign: str) -> Box:
        """A circle centred on a point."""
        size = 15 if sign == "+" else 11
        text = Text(x, y + size / 3, sign, size, "middle", bold=True)
        return Box(self.id(), "sum", x - RADIUS, y - RADIUS, 2 * RADIUS, 2 * RADIUS, (text,))

    def text_box(self, part: Part, width: float) -> Box:
        """The box of a part with its title, its parameters on the right, and its details; its corner is at (0, 0).

        A small box is as wide as its words need, and at most as a large one.
        """
        needed = max(
            text_width(part.title, MEDIUM, bold=True), *(text_width(d, SMALL) for d in part.details), 0
        )
        width = max(width, min(math.ceil(needed) + 2 * INSET + 1, WIDE))
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
        return Box(self.id(), "box", 0, 0, width, height, tuple(texts), part.role, part, many)

    def pill(self, part: Part, left: float, right: float, bottom: float) -> Box:
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
        return Box(self.id(), "pill", left, bottom - height, right - left, height, texts, part.role, part)

    def attention(self, part: AttentionPart) -> Piece:
        """An attention with its queries, keys and values, and the parts that act on them."""
        start, entry = self.point(0, 0)
        boxes, arrows, inlets = [start], [], []
        from_encoder = part.reads_encoder
        query, key, value = (0.0, CROSS_KEY, CROSS_VALUE) if from_encoder else (QUERY, KEY, VALUE)
        lanes, margin = {"Q": query, "K": key, "V": value}, 32
        if part.reuses_keys_values:
            query = key = 0.0
            lanes, margin = {"Q": query}, 80
        source = entry
        if from_encoder:
            meeting, source = self.point(value, -10)
            boxes.append(meeting)
            inlets.append(Inlet("encoder", source))
        lines: dict[float, Port] = {}
        starts = {query: entry, key: source, value: source}
        bottom = -24.0 if part.on_queries_keys else -8.0
        for inner in part.on_queries_keys:
            pill = self.pill(inner, min(query, key) - margin, max(query, key) + margin, bottom)
            boxes.append(pill)
            for x in dict.fromkeys((query, key)):
                arrows.append(
                    _risen(lines.get(x) or starts[x], x, Port(pill.id, x, bottom, takes_head=False))
                )
                lines[x] = Port(pill.id, x, pill.y)
            bottom = pill.y - 8
        box = self.text_box(part, WIDE)
        bottom -= 18
        box = box.moved(-WIDE / 2, bottom - box.height)
        for letter, x in lanes.items():
            arrows.append(_risen(lines.get(x) or starts[x], x, Port(box.id, x, bottom)))
            text = Text(x + 6, bottom + 13, letter, TINY, quiet=True)
            boxes.append(Box(self.id(), "text", x + 5, bottom + 4, text.width + 2, 11, (text,)))
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


def _risen(source: Port, x: float, target: Port) -> Arrow:
    """An arrow that goes sideways and then up."""
    corner = [(x, source.y)] if source.x != x else []
    return Arrow(
        ((source.x, source.y), *corner, (x, target.y)), source.box, target.box, head=target.takes_head
    )
