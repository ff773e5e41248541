"""Pieces of a drawing that know their size and where lines enter and leave them; put together, they make a column.

A piece stands on the point (0, 0), where the stream enters it, and reaches up to ``-height``: upwards is towards smaller y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from zoo.drawing.diagram import Part
from zoo.drawing.scene import Arrow, Box


@dataclass(frozen=True)
class Port:
    """A place on the border of a box."""

    box: str
    x: float
    y: float
    takes_head: bool = True

    def moved(self, dx: float, dy: float) -> Port:
        return replace(self, x=self.x + dx, y=self.y + dy)


@dataclass(frozen=True)
class Inlet:
    """A port that waits for a line from elsewhere: the encoder, or what is added to scores."""

    kind: Literal["encoder", "scores"]
    port: Port
    part: Part | None = None

    def moved(self, dx: float, dy: float) -> Inlet:
        return replace(self, port=self.port.moved(dx, dy))


@dataclass(frozen=True)
class Piece:
    """Boxes and arrows around the stream, which passes from ``entry`` to ``exit``; without these it passes beside."""

    left: float
    right: float
    height: float
    boxes: tuple[Box, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    inlets: tuple[Inlet, ...] = ()
    entry: Port | None = None
    exit: Port | None = None

    def moved(self, dx: float, dy: float) -> Piece:
        """The same elsewhere; left, right and height keep their meaning for what is around it."""
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
    """Pieces above one another, joined by the stream."""
    height, placed, arrows = 0.0, [], []
    last: Port | None = None
    for number, piece in enumerate(pieces):
        here = piece.moved(0, -height - (gap if number else 0))
        height += piece.height + (gap if number else 0)
        placed.append(here)
        if here.entry is not None:
            if last is not None:
                arrows.append(straight(last, here.entry))
            last = here.exit
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
    """Pieces next to one another, each with the x of its stream; that of the one in the middle is 0."""
    places, edge = [], 0.0
    for piece in pieces:
        places.append(edge + piece.left)
        edge += piece.left + piece.right + gap
    half = len(pieces) // 2
    middle = places[half] if len(pieces) % 2 else places[half] - pieces[half].left - gap / 2
    return [(x - middle, piece.moved(x - middle, 0)) for x, piece in zip(places, pieces, strict=True)]
