"""The result of running an export's files on an engine."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from zoo.record.records import EngineClaim, EngineRecord

Outcome = Literal["computed", "compiled", "failed", "not tried"]


@dataclass(frozen=True)
class EngineResult:
    """The engine, its version, and its result.

    ``computed``: the engine ran the ``cases``; ``max_abs`` is the largest difference from PyTorch with the stored weights, and
    ``rounded`` the largest difference of files that round from ONNX Runtime's CPU provider. ``compiled``: it compiled for the
    ``architectures``. ``failed``: ``words`` has the engine's message and ``node`` the node that it names. ``not tried``:
    ``words`` has the reason. ``untried`` lists the parts of the files that did not run, with reasons.
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

    @property
    def shown(self) -> bool:
        """Whether the engine computed or compiled the files."""
        return self.outcome in ("computed", "compiled")

    def __str__(self) -> str:
        return self.record.text

    @property
    def record(self) -> EngineRecord:
        """The entry in ``build.json``."""
        return EngineRecord(**asdict(self))

    @property
    def claim(self) -> EngineClaim:
        """The entry in ``export.json``, which does not depend on the machine."""
        return EngineClaim(
            engine=self.engine,
            version=self.version,
            outcome=self.outcome,
            architectures=self.architectures,
        )

    def followed_by(self, other: EngineResult) -> EngineResult:
        """The joint result for two sets of files: the first failure, or the larger differences."""
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
    return max((value for value in (one, other) if value is not None), default=None)
