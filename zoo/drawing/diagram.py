"""The content of a drawing, without coordinates: columns of parts that the stream passes from bottom to top."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from specs.base.words import PartRole
from specs.model.stack import StackName


@dataclass(frozen=True)
class Part:
    """A box: ``modules`` are the paths that it stands for, one per layer, without submodules drawn as separate parts.

    ``parameters`` counts all of them, each weight once; ``count`` is the text for one layer.  ``keys`` is the path in the spec
    of the keys that describe it, such as ``decoder.block.attention``.
    """

    role: PartRole
    title: str
    details: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    parameters: int = 0
    count: str = ""
    keys: str = ""


@dataclass(frozen=True)
class AttentionPart(Part):
    """An attention.  ``on_queries_keys`` come in this order before the scores, ``on_scores`` is added to them.

    With ``reuses_keys_values`` the stream gives queries alone.
    """

    on_queries_keys: tuple[Part, ...] = ()
    on_scores: Part | None = None
    reads_encoder: bool = False
    reuses_keys_values: bool = False


@dataclass(frozen=True)
class ExpertsPart(Part):
    """A mixture of experts."""


@dataclass(frozen=True)
class Sum:
    """Branches from one point that meet in the sign of a sum or another function, or in a part; an empty branch is the skip connection."""

    ways: tuple[Way, ...]
    join: str | Part = "+"


@dataclass(frozen=True)
class Joined:
    """A part that joins the stream from the side: added, or with ``\u2225`` concatenated before it."""

    part: Part
    sign: Literal["+", "∥"] = "+"


@dataclass(frozen=True)
class Inserted:
    """The point at which the vectors of the column before join the stream's."""

    text: str


@dataclass(frozen=True)
class DiagramFrame:
    """A frame around repeated layers, with the modules, parameters and keys that a part has."""

    label: str
    note: str
    way: Way
    modules: tuple[str, ...] = ()
    parameters: int = 0
    keys: str = ""


@dataclass(frozen=True)
class Label:
    """Text with a shape: at the ends of the stream, beside it, or at an intermediate output."""

    text: str
    shape: str
    location: Literal["begin", "beside", "out", "end"] = "beside"


Element = Part | Sum | Joined | Inserted | DiagramFrame | Label
Way = tuple[Element, ...]


@dataclass(frozen=True)
class DiagramColumn:
    """A stack from its inputs up to its outputs."""

    name: StackName | Literal["meeting"]
    way: Way


@dataclass(frozen=True)
class Diagram:
    """The whole drawing.  ``ties``: pairs of parts, the second of which shares a weight of the first; ``meeting``: what both
    columns lead to."""

    name: str
    facts: tuple[str, ...]
    parameters: int
    columns: tuple[DiagramColumn, ...]
    ties: tuple[tuple[Part, Part], ...] = ()
    symbols: dict[str, str] = field(default_factory=dict)
    meeting: Way = ()

    def parts(self) -> list[Part]:
        """Every part, each once, from the encoder's inputs to the last outputs."""
        ways = [*(column.way for column in self.columns), self.meeting]
        return list(dict.fromkeys(part for way in ways for part in parts_of(way)))


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
                for branch in element.ways:
                    yield from parts_of(branch)
                if isinstance(element.join, Part):
                    yield element.join
            case DiagramFrame():
                yield from parts_of(element.way)
