"""Words of parts of models: the details and steps that kinds state for drawings and pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from specs.base.roles import field_values

PartRole = Literal["embedding", "position", "norm", "attention", "mixer", "feed-forward", "head", "other"]
"""The job of a part in a model, which decides the colour of its box."""

TIMES = "\u00d7"


@dataclass(frozen=True)
class PartContext:
    """The surroundings of a part that its details depend on.

    ``width`` is the width of its output, and of its input unless ``input_width`` is set; ``second_width`` is that of a second
    stream, if there is one; ``rows`` counts the rows of its table, if it has one; ``length`` names the number of tokens or
    vectors, such as T.
    """

    width: int
    input_width: int | None = None
    second_width: int | None = None
    causal: bool = False
    cross: bool = False
    rows: int | None = None
    vocab_size: int | None = None
    context_length: int | None = None
    length: str = "T"

    @property
    def read_width(self) -> int:
        """The width of the input."""
        return self.input_width or self.width


WIDTHS = "\x00widths"
"""A detail that stands for the input and output width of a step's matrix."""
SIZES = "\x00sizes"
"""A detail that stands for the sizes of a step's weight."""


@dataclass(frozen=True)
class Step:
    """A box in the drawing of a component.

    ``module`` is the path inside the component of the module whose weights it counts, ``""`` for the whole component and None
    for a step without weights.  With ``joins`` it joins the stream from the side: added, or concatenated before it.
    """

    title: str
    module: str | None = None
    details: tuple[str, ...] = ()
    role: PartRole | None = None
    joins: Literal["", "+", "\u2225"] = ""


@dataclass(frozen=True)
class PositionStep:
    """The step of an embedding at which the position joins."""


@dataclass(frozen=True)
class Output:
    """An output of a head: its label and its shape.  The stream goes on after it unless it is the last."""

    text: str
    shape: str = ""


def product(*sizes: int | str) -> str:
    """Sizes as a product: rows times columns."""
    return f" {TIMES} ".join(f"{size:,}" if isinstance(size, int) else size for size in sizes)


def plus(number: int) -> str:
    """A number as a further term of a sum: + 80, or - 7."""
    return f"{'+' if number >= 0 else '-'} {abs(number):,}"


def number_text(value: float) -> str:
    """A number without superfluous digits: 50, 0.0625, 500,000."""
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e9 else f"{value:.3g}"


def visible(text: str) -> str:
    """A user's text without control characters."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def plain_fields(spec: BaseModel) -> list[str]:
    """The numbers and texts among the fields of a spec, as details."""
    return [
        f"{name.replace('_', ' ')} {visible(value) if isinstance(value, str) else number_text(value)}"
        for name, value in field_values(spec).items()
        if name != "kind" and isinstance(value, int | float | str) and not isinstance(value, bool)
    ]


def factor_details(multipliers: BaseModel) -> list[str]:
    """The parts that a constant factor other than 1 scales."""
    factors = field_values(multipliers).items()
    return [f"{name} {TIMES} {number_text(factor)}" for name, factor in factors if factor != 1.0]


def only_signs(widths: Iterable[int]) -> str:
    """The reason why normalized vectors of some widths need not depend on an input; empty if all are wide enough."""
    narrowest = min(widths, default=3)
    return f"a normalized vector of width {narrowest} carries only signs" if narrowest < 3 else ""
