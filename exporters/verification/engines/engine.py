"""The description of an engine: a runtime that runs the files, or a compiler that takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from exporters.target.targets import TARGETS

RUNNERS = Path(__file__).parent / "runners"
"""The folder of the scripts that run in an engine's interpreter."""

Shows = Literal["computes", "compiles"]


@dataclass(frozen=True)
class Engine:
    """A runtime or compiler, with all of its particulars.

    A package adds one with ``ENGINES[engine.name] = engine``.
    """

    name: str
    description: str
    """A one-line description."""
    shows: Shows
    """Whether it computes, so that its outputs are compared, or only compiles."""
    runner: Path
    """The script that runs it: it needs the standard library, numpy and the engine's package
    (:mod:`exporters.verification.engines.runners.protocol`)."""
    module: str
    """The module that its package installs; if this interpreter has it, no other is needed."""
    packages: tuple[str, ...]
    """The packages to install, as pip takes them."""
    node_packages: tuple[str, ...] = ()
    """The npm packages that its runner needs, if it is a Node.js script."""
    targets: frozenset[str] = frozenset()
    """The targets whose graphs it takes; empty for all."""
    libraries: str = ""
    """The system libraries that the machine needs in addition, with installation advice; empty for none."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options passed to its runner at start: ONNX Runtime providers, architectures to compile for."""
    architectures: tuple[str, ...] = ()
    """The architectures for ahead-of-time compilation; empty for engines that write no files."""
    exact_forms: bool = True
    """Whether it can run the exact forms of files (:mod:`exporters.verification.exact.graph`), which compute in float32 and float64."""
    bfloat16: bool = False
    """Whether it takes bfloat16; otherwise such files run in float32, as on ONNX Runtime's CPU provider."""

    @property
    def program(self) -> str:
        """The interpreter of its runner."""
        return "node" if self.runner.suffix == ".mjs" else "python"

    def speaks_for(self, target: str) -> bool:
        """Whether it takes the graphs of a target."""
        return not self.targets or target in self.targets

    @property
    def targets_text(self) -> str:
        """The targets whose graphs it takes."""
        return ", ".join(name for name in TARGETS if self.speaks_for(name))
