"""What a drawing shows, before anything has a place: columns of parts that the stream passes from bottom to top."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["embedding", "position", "norm", "attention", "feed-forward", "head", "other"]


@dataclass(frozen=True)
class Part:
    """A box: ``modules`` are the paths that it stands for, one per layer, without those drawn as parts of their own.

    ``parameters`` are those of all of them, each weight counted once, and ``count`` is how they are told: for one layer.
    """

    role: Role
    title: str
    details: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    parameters: int = 0
    count: str = ""


@dataclass(frozen=True)
class AttentionPart(Part):
    """An attention.  ``on_queries_keys`` come in this order before the scores, ``on_scores`` is added to them."""

    on_queries_keys: tuple[Part, ...] = ()
    on_scores: Part | None = None
    reads_encoder: bool = False


@dataclass(frozen=True)
class ExpertsPart(Part):
    """A mixture of experts."""


@dataclass(frozen=True)
class Sum:
    """Ways that begin at the same point and are added up; one without elements is the stream itself."""

    ways: tuple[Way, ...]


@dataclass(frozen=True)
class Joined:
    """A part that joins the stream from the side: added to it, or with ``\u2225`` put before it."""

    part: Part
    sign: Literal["+", "∥"] = "+"


@dataclass(frozen=True)
class Frame:
    """A frame around what is repeated."""

    label: str
    note: str
    way: Way


@dataclass(frozen=True)
class Label:
    """Text where the stream begins or ends, beside it, or where some of it goes out on the way; with its shape."""

    text: str
    shape: str
    place: Literal["begin", "beside", "out", "end"] = "beside"


Element = Part | Sum | Joined | Frame | Label
Way = tuple[Element, ...]


@dataclass(frozen=True)
class Column:
    """A stack from its inputs up to its outputs."""

    name: Literal["encoder", "decoder"]
    way: Way


@dataclass(frozen=True)
class Diagram:
    """All that is drawn.  ``ties`` are pairs of parts, the second of which uses a weight of the first."""

    name: str
    facts: tuple[str, ...]
    parameters: int
    columns: tuple[Column, ...]
    ties: tuple[tuple[Part, Part], ...] = ()
    symbols: dict[str, str] = field(default_factory=dict)

    def parts(self) -> list[Part]:
        """Every part, each once, from the encoder's inputs to the last outputs."""
        return list(dict.fromkeys(part for column in self.columns for part in parts_of(column.way)))


def parts_of(way: Iterable[Element]) -> Iterator[Part]:
    """The parts on a way and beside it."""
    for element in way:
        match element:
            case AttentionPart():
                yield from element.on_queries_keys
                if element.on_scores is not None:
                    yield element.on_scores
                yield element
            case Part():
                yield element
            case Joined():
                yield element.part
            case Sum():
                for each in element.ways:
                    yield from parts_of(each)
            case Frame():
                yield from parts_of(element.way)
