"""Real clients: each in an environment of its own, driven by a script that reads requests and prints answers, as JSON."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / ".clients"
"""Made by ``make test-clients``."""

SECONDS = 200
"""The time limit of an answer."""

KEPT = ExitStack()
"""Processes of clients, and a browser, that the tests share until they end."""


@dataclass(frozen=True)
class Client:
    """A client's environment, and the script that drives it.

    The process of a client answers one request after another: to import its libraries takes longer than most answers.
    """

    environment: str
    program: str
    script: str
    kept: bool = True
    """False for a client that takes one model in the life of a process."""

    def __call__(self, directory: Path, **request: Any) -> Any:
        """What the client makes of a directory, or an error with all it printed."""
        process = _RUNNING.get(self) or self._started()
        answer = process.answer({"directory": str(directory), **request})
        if answer is None or not self.kept:
            words = _RUNNING.pop(self).end()
            assert answer is not None, f"{self.script} failed:\n{words}"
        return answer

    def _started(self) -> ClientProcess:
        place = ENVIRONMENTS / self.environment
        program = place / "bin" / self.program
        assert program.exists(), f"{program} is missing: run `make test-clients`"
        return _RUNNING.setdefault(self, KEPT.enter_context(_process([program, *self._arguments()], place)))

    def _arguments(self) -> list[Path]:
        script = HERE / self.script
        return [script] if self.program == "node" else [HERE / "drive.py", script]


@dataclass(frozen=True)
class ClientProcess:
    """A process that answers requests, and the file of all it printed."""

    process: subprocess.Popen[str]
    printed: IO[bytes]

    def answer(self, request: dict[str, Any]) -> Any:
        """The answer to a request; None if the process has ended, or gives none in time."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], SECONDS)
        line = self.process.stdout.readline() if ready else ""
        return json.loads(line) if line else None

    def end(self) -> str:
        """End the process, and return all that it printed."""
        self.process.kill()
        self.process.wait()
        self.printed.seek(0)
        return self.printed.read().decode(errors="replace")


@contextmanager
def _process(command: list[Path], place: Path) -> Iterator[ClientProcess]:
    with (
        suppress(BrokenPipeError),  # when stdin of a process that has ended is closed
        tempfile.TemporaryFile() as printed,
        subprocess.Popen(
            command, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=printed, encoding="utf-8",
            env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""},
        ) as process,
    ):  # fmt: skip
        try:
            yield ClientProcess(process, printed)
        finally:
            process.kill()


_RUNNING: dict[Client, ClientProcess] = {}

GENAI = Client("genai", "python", "drive_genai.py")
GENAI_MTP = Client("genai", "python", "drive_genai_mtp.py")
OPTIMUM = Client("optimum", "python", "drive_optimum.py")
GLINER = Client("optimum", "python", "drive_gliner.py")
SENTENCE_TRANSFORMERS = Client("optimum", "python", "drive_sentence_transformers.py")
VLLM = Client("vllm", "python", "drive_vllm.py", kept=False)
TRANSFORMERS_JS = Client("transformers-js", "node", "drive_transformers_js.mjs")
