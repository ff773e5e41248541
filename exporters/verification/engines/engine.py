"""An engine: a runtime that computes what the files say, or a compiler that takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from exporters.target.targets import TARGETS

RUNNERS = Path(__file__).parent / "runners"
"""The scripts that run in an engine's own interpreter."""

Shows = Literal["computes", "compiles"]


@dataclass(frozen=True)
class Engine:
    """A real runtime or compiler, with everything that is particular to it.

    A package adds one with ``ENGINES[engine.name] = engine``.
    """

    name: str
    description: str
    """What it is, in one line."""
    shows: Shows
    """Whether it computes, so that its outputs are compared, or only compiles."""
    runner: Path
    """The script that runs it: it needs the standard library, numpy and the engine's package
    (:mod:`exporters.verification.engines.runners.protocol`)."""
    module: str
    """The module that its package installs; where it can be found here, no other interpreter is needed."""
    packages: tuple[str, ...]
    """The packages to install, as pip takes them."""
    node_packages: tuple[str, ...] = ()
    """What its runner needs of node's packages, where it is a script for node."""
    targets: frozenset[str] = frozenset()
    """The targets whose graphs it takes; empty for all."""
    libraries: str = ""
    """What the machine must have beside the packages, and how it is installed; empty for nothing."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What its runner is told when it starts: the providers of ONNX Runtime, architectures to compile for."""
    architectures: tuple[str, ...] = ()
    """The architectures that it can compile for ahead of time; empty for engines that write no files."""
    exact_forms: bool = True
    """Whether it can run the exact forms of files (:mod:`exporters.verification.exact.graph`), which compute in float32 and float64."""
    bfloat16: bool = False
    """Whether it takes bfloat16; otherwise such files run with float32 in its place, as on ONNX Runtime's CPU provider."""

    @property
    def program(self) -> str:
        """The program that runs its runner."""
        return "node" if self.runner.suffix == ".mjs" else "python"

    def speaks_for(self, target: str) -> bool:
        """Whether it takes the graphs of a target."""
        return not self.targets or target in self.targets

    @property
    def targets_text(self) -> str:
        """The targets whose graphs it takes."""
        return ", ".join(name for name in TARGETS if self.speaks_for(name))
