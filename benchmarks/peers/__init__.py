"""Alternative tools to compare with, each in its own environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = Path(os.environ.get("PEERS", HERE.parents[1] / ".peers"))
"""Where `make peers` creates the environments."""

MISSING = "peer not installed: make peers"


@dataclass(frozen=True)
class Peer:
    """An environment, with the programs in it."""

    name: str

    def program(self, name: str) -> str:
        """The path of a program."""
        return str(ENVIRONMENTS / self.name / "bin" / name)

    @property
    def present(self) -> bool:
        """Whether it is installed."""
        return Path(self.program("python")).exists()

    def command(self, program: str, *arguments: str | Path) -> list[str]:
        """The command that runs a program of the environment offline."""
        return ["env", "HF_HUB_OFFLINE=1", self.program(program), *map(str, arguments)]

    def driver(self) -> list[str]:
        """The command of the worker that drives the peer: see :mod:`exporters.benchmark.serving`."""
        command = self.command("python", HERE / f"drive_{self.name}.py")
        return ["env", f"PYTHONPATH={HERE.parents[1]}", *command]  # nothing of this environment


GENAI, OPTIMUM, MOBIUS = map(Peer, ("genai", "optimum", "mobius"))


def genai_build(checkpoint: Path, precision: str, directory: Path) -> list[str]:
    """The command that makes onnxruntime-genai's files of a checkpoint."""
    builder = ["-m", "onnxruntime_genai.models.builder", "-p", precision, "-e", "cpu"]
    return GENAI.command("python", *builder, "-i", checkpoint, "-o", directory)


def optimum_export(checkpoint: Path, task: str, directory: Path) -> list[str]:
    """The command that makes optimum's files of a checkpoint."""
    return OPTIMUM.command("optimum-cli", "export", "onnx", "--model", checkpoint, "--task", task, directory)


def mobius_build(checkpoint: Path, directory: Path) -> list[str]:
    """The command that makes mobius' files of a checkpoint."""
    return MOBIUS.command("mobius", "build", "--config", checkpoint, directory)
