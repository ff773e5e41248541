"""The comparisons of the families' tests, for the summary at the end of a run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Parity:
    """The largest differences of one configuration."""

    family: str
    pytorch: float = 0.0
    onnx: float = 0.0
    fuzzed: bool = False


@dataclass
class Recorded:
    """The comparisons of this process, for the summary at the end."""

    results: list[Parity] = field(default_factory=list)


RECORDED = Recorded()
