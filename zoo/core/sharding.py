"""How a component is cut among processes that compute it together.

A component states it beside its definition, with a method ``sharding() -> Sharding``; plugins' components do the same.  What
no component states is replicated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "columns",
    "rows",
    "vocabulary",
    "experts",
    "heads",
    "shared",
    "read_by_all",
    "summed",
    "gathered",
    "sliced",
]
"""How a module, or a parameter, is cut among N processes.

- columns: a linear layer by its outputs, or a table by its columns; every process has all inputs.
- rows: a linear layer by its inputs; the products of all processes are summed.
- vocabulary: a token table, or a projection to the vocabulary, by its tokens; every process has all outputs.
- experts: a mixture by its experts; each process computes those that it has, and the outputs are summed.
- heads: parameters by their first axis; inputs and outputs belong to the process's own heads or channels.
- shared: a whole copy of the parameters, applied to the process's own heads or channels.
- read_by_all: a whole copy, whose outputs are read by the heads of every process.
- summed: as rows, and the outputs are read by the heads of every process.
- gathered: a whole copy, applied to the channels of all processes, of which each keeps its own.
- sliced: a whole copy with an output for every head, of which each process keeps its own.
"""


@dataclass(frozen=True)
class Section:
    """Consecutive rows of a matrix that are cut together, or kept whole by every process."""

    size: int
    cut: bool = True

    def local(self, degree: int) -> int:
        """The rows of one process."""
        return self.size // degree if self.cut else self.size


@dataclass(frozen=True)
class Cut:
    """The cut of one module or parameter.  A matrix of several ``sections`` is stored whole by every process, which
    computes with its own part of each."""

    kind: Kind
    sections: tuple[Section, ...] = ()


COLUMNS, ROWS, VOCABULARY, EXPERTS = Cut("columns"), Cut("rows"), Cut("vocabulary"), Cut("experts")
HEADS, SHARED, READ_BY_ALL, SUMMED = Cut("heads"), Cut("shared"), Cut("read_by_all"), Cut("summed")
GATHERED, SLICED = Cut("gathered"), Cut("sliced")


@dataclass(frozen=True)
class Sharding:
    """The table of a component.

    ``cuts``: by the path of a module or parameter inside it, ``""`` for its own; paths that do not exist are passed over.
    ``counts``: the numbers that the degree must divide, by their fields in the spec.
    ``divided``: attributes that count heads or channels, or list a number for each, and the sections that they count.
    ``last``: the path of the layer cut by rows whose sum is the component's output, if it ends with one.
    """

    cuts: Mapping[str, Cut] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    divided: Mapping[str, tuple[Section, ...]] = field(default_factory=dict)
    last: str | None = None


def counted(**attributes: int) -> dict[str, tuple[Section, ...]]:
    """Attributes that are one number each, all of it divided."""
    return {name: (Section(size),) for name, size in attributes.items()}
