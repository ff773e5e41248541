"""Pieces of a drawing with their sizes and ports; stacked, they make a column.

The stream enters a piece at (0, 0), and the piece extends up to ``-height``: y decreases upwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from zoo.drawing.diagram import Part
from zoo.drawing.scene import Arrow, Box


@dataclass(frozen=True)
class Port:
    """A point on the edge of a box."""

    box: str
    x: float
    y: float
    takes_head: bool = True

    def moved(self, dx: float, dy: float) -> Port:
        return Port(self.box, self.x + dx, self.y + dy, self.takes_head)


@dataclass(frozen=True)
class Inlet:
    """A port for a line from outside the piece: from the encoder, or from a part added to scores."""

    kind: Literal["encoder", "scores"]
    port: Port
    part: Part | None = None

    def moved(self, dx: float, dy: float) -> Inlet:
        return replace(self, port=self.port.moved(dx, dy))


@dataclass(frozen=True)
class Piece:
    """Boxes and arrows; the stream passes from ``entry`` to ``exit``, or beside the piece if it has none."""

    left: float
    right: float
    height: float
    boxes: tuple[Box, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    inlets: tuple[Inlet, ...] = ()
    entry: Port | None = None
    exit: Port | None = None

    def moved(self, dx: float, dy: float) -> Piece:
        """The piece at an offset; left, right and height are unchanged."""
        return replace(
            self,
            boxes=tuple(box.moved(dx, dy) for box in self.boxes),
            arrows=tuple(arrow.moved(dx, dy) for arrow in self.arrows),
            inlets=tuple(inlet.moved(dx, dy) for inlet in self.inlets),
            entry=self.entry and self.entry.moved(dx, dy),
            exit=self.exit and self.exit.moved(dx, dy),
        )


def straight(source: Port, target: Port) -> Arrow:
    """The arrow between ports one above the other."""
    return Arrow(((source.x, source.y), (target.x, target.y)), source.box, target.box, head=target.takes_head)


def piled(pieces: Sequence[Piece], gap: float) -> Piece:
    """Stack pieces upwards along the stream."""
    height, placed, arrows = 0.0, [], []
    last: Port | None = None
    for number, piece in enumerate(pieces):
        moved = piece.moved(0, -height - (gap if number else 0))
        height += piece.height + (gap if number else 0)
        placed.append(moved)
        if moved.entry is not None:
            if last is not None:
                arrows.append(straight(last, moved.entry))
            last = moved.exit
    entries = [piece.entry for piece in placed if piece.entry is not None]
    return Piece(
        max((piece.left for piece in pieces), default=0),
        max((piece.right for piece in pieces), default=0),
        height,
        tuple(box for piece in placed for box in piece.boxes),
        (*(arrow for piece in placed for arrow in piece.arrows), *arrows),
        tuple(inlet for piece in placed for inlet in piece.inlets),
        entries[0] if entries else None,
        last,
    )


def beside(pieces: Sequence[Piece], gap: float) -> list[tuple[float, Piece]]:
    """Pieces side by side, each with the x of its stream; the middle one is at 0."""
    places, edge = [], 0.0
    for piece in pieces:
        places.append(edge + piece.left)
        edge += piece.left + piece.right + gap
    half = len(pieces) // 2
    middle = places[half] if len(pieces) % 2 else places[half] - pieces[half].left - gap / 2
    return [(x - middle, piece.moved(x - middle, 0)) for x, piece in zip(places, pieces, strict=True)]
