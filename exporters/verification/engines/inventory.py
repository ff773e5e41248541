"""The inventory of installed engines: each is started and asked for its version."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from exporters.target.targets import TARGETS
from exporters.verification.engines.engine import Engine, Shows
from exporters.verification.engines.find import engines_here, installation, interpreter_of
from exporters.verification.engines.process import EngineError, started
from specs.base.errors import reason_of

_SECONDS = 60.0


@dataclass(frozen=True)
class EngineState:
    """An engine on this machine: its ``version`` if it starts, otherwise its ``problem``, or the commands to ``install`` it."""

    name: str
    description: str
    shows: Shows
    targets: tuple[str, ...]
    version: str
    python: str
    problem: str
    libraries: str
    install: tuple[str, ...]


def inventory() -> list[EngineState]:
    """The state of every engine of the table, and of every installed version of ONNX Runtime."""
    with ThreadPoolExecutor(4) as pool:
        return [*pool.map(_state, engines_here())]


def _state(engine: Engine) -> EngineState:
    python, version, problem = interpreter_of(engine), "", ""
    if python is not None:
        try:
            with started(engine, python, _SECONDS) as process:
                version = process.version
        except EngineError as error:
            problem = reason_of(error).rstrip(".")
    return EngineState(
        engine.name,
        engine.description,
        engine.shows,
        tuple(name for name in TARGETS if engine.speaks_for(name)),
        version,
        "" if python is None else str(python),
        problem,
        engine.libraries,
        () if python is not None else tuple(installation(engine)),
    )
