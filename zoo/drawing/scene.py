"""A drawing as boxes, arrows and text with coordinates, independent of the file format.

Lengths are in pixels; x grows to the right, y downwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from specs.base.words import PartRole
from zoo.drawing.diagram import DiagramFrame, Part
from zoo.drawing.text import text_width

Point = tuple[float, float]
Shape = Literal["box", "pill", "sum", "point", "frame", "text"]
"""A part, a small box on lines, a circle with a sign, a junction, a frame, or text alone."""


@dataclass(frozen=True)
class Text:
    """A line of text; x is its start, middle or end by anchor, and y its baseline."""

    x: float
    y: float
    text: str
    size: float
    anchor: Literal["start", "middle", "end"] = "start"
    bold: bool = False
    quiet: bool = False

    def moved(self, dx: float, dy: float) -> Text:
        return Text(self.x + dx, self.y + dy, self.text, self.size, self.anchor, self.bold, self.quiet)

    @property
    def left(self) -> float:
        """Where it begins."""
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]
        return self.x - share * self.width

    @property
    def width(self) -> float:
        return text_width(self.text, self.size, bold=self.bold)


@dataclass(frozen=True)
class Box:
    """An element that arrows connect, or a frame; ``many`` is drawn as a pile."""

    id: str
    shape: Shape
    x: float
    y: float
    width: float
    height: float
    texts: tuple[Text, ...] = ()
    role: PartRole | None = None
    part: Part | None = None
    many: bool = False
    frame: DiagramFrame | None = None

    def moved(self, dx: float, dy: float) -> Box:
        texts = tuple(text.moved(dx, dy) for text in self.texts)
        return Box(
            self.id, self.shape, self.x + dx, self.y + dy, self.width, self.height,
            texts, self.role, self.part, self.many, self.frame,
        )  # fmt: skip

    @property
    def middle(self) -> Point:
        return self.x + self.width / 2, self.y + self.height / 2

    @property
    def subject(self) -> Part | DiagramFrame | None:
        """The part or frame of the model that the box draws, if any."""
        return self.part or self.frame

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        data: dict[str, Any] = {"id": self.id, "shape": self.shape}
        sides = {"x": self.x, "y": self.y, "width": self.width, "height": self.height}
        data |= {name: round(value, 1) for name, value in sides.items()}
        data["texts"] = [text.text for text in self.texts]
        if self.part is not None:
            data |= {"role": self.role, "title": self.part.title, "details": list(self.part.details)}
            data |= {"modules": list(self.part.modules), "parameters": self.part.parameters}
            data |= {"keys": self.part.keys}
        return data


@dataclass(frozen=True)
class Arrow:
    """A line between the edges of two boxes; ``kind`` says what flows."""

    points: tuple[Point, ...]
    source: str
    target: str
    kind: Literal["stream", "encoder", "scores", "tie"] = "stream"
    head: bool = True

    def moved(self, dx: float, dy: float) -> Arrow:
        points = tuple((x + dx, y + dy) for x, y in self.points)
        return Arrow(points, self.source, self.target, self.kind, self.head)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        points = [[round(x, 1), round(y, 1)] for x, y in self.points]
        return {"from": self.source, "to": self.target, "kind": self.kind, "points": points}


@dataclass(frozen=True)
class Scene:
    """A drawing with its size; frames come before their content."""

    title: str
    description: str
    parameters: int
    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    texts: tuple[Text, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "title": self.title,
            "description": self.description,
            "parameters": self.parameters,
            "width": self.width,
            "height": self.height,
            "boxes": [box.as_dict() for box in self.boxes],
            "arrows": [arrow.as_dict() for arrow in self.arrows],
        }
