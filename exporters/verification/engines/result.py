"""What an engine showed of the files of an export."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from zoo.record.records import EngineClaim, EngineRecord

Outcome = Literal["computed", "compiled", "failed", "not tried"]


@dataclass(frozen=True)
class EngineResult:
    """The engine and its version, and what it showed.

    An engine that ``computed`` ran the ``cases``: ``max_abs`` is the largest difference from PyTorch with the stored weights, and
    ``rounded`` that of the files from ONNX Runtime's CPU provider where they round. One that ``compiled`` did so for the
    ``architectures``. ``failed`` gives the engine's own ``words`` and the ``node`` that it names; ``not tried`` gives the reason
    in ``words``. ``untried`` says what of the files did not run on it, and why.
    """

    engine: str
    version: str
    outcome: Outcome
    cases: int = 0
    max_abs: float | None = None
    rounded: float | None = None
    architectures: tuple[str, ...] = ()
    node: str = ""
    words: str = ""
    untried: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the engine did not fail."""
        return self.outcome != "failed"

    def __str__(self) -> str:
        return self.record.text

    @property
    def record(self) -> EngineRecord:
        """As it is recorded in ``build.json``."""
        return EngineRecord(**asdict(self))

    @property
    def claim(self) -> EngineClaim:
        """As it is recorded in ``export.json``, whatever the machine."""
        return EngineClaim(
            engine=self.engine,
            version=self.version,
            outcome=self.outcome,
            architectures=self.architectures,
        )

    def followed_by(self, other: EngineResult) -> EngineResult:
        """The result for two sets of files: the first failure, or the worse of the differences."""
        if not (self.passed and other.passed):
            return other if self.passed else self
        return replace(
            self,
            cases=self.cases + other.cases,
            max_abs=_larger(self.max_abs, other.max_abs),
            rounded=_larger(self.rounded, other.rounded),
            untried=tuple(dict.fromkeys([*self.untried, *other.untried])),
        )

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {**asdict(self), "architectures": [*self.architectures], "untried": [*self.untried]}


def _larger(one: float | None, other: float | None) -> float | None:
    return max((each for each in (one, other) if each is not None), default=None)
