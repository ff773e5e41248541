"""An engine in a separate process: requests and answers, within a time limit, whatever the process does."""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from exporters.verification.engines.engine import Engine

SECONDS = 1800.0
"""The time limit for one request, in seconds."""

LONGEST_LINE = 2**20
"""The size limit of an answer without its tensors, in bytes."""

_SAID = 2000
"""The number of bytes of a dead process's output to pass on."""

_WORDS = 2000
_DTYPE = re.compile(r"[<|=][biuf][1248]")

Array = NDArray[Any]


class EngineError(Exception):
    """An engine refuses a graph, or its process fails: ``node`` is the node that it names, or empty."""

    def __init__(self, words: str, node: str = "") -> None:
        super().__init__(words)
        self.words = words
        self.node = node


@dataclass
class EngineProcess:
    """A runner in the interpreter of its engine."""

    engine: Engine
    process: subprocess.Popen[bytes]
    folder: Path
    seconds: float
    version: str = ""
    lacks: tuple[str, ...] = ()
    """The features that the engine lacks on this machine, such as float16."""
    asides: dict[str, None] = field(default_factory=dict)
    """The parts of the graphs that it did not run, in its own words."""
    _answers: queue.Queue[bytes] = field(default_factory=queue.Queue)
    _count: int = 0

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and return the answer. Raises :class:`EngineError`."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:  # it has ended: its answer will be missing
            pass
        try:
            line = self._answers.get(timeout=self.seconds)
        except queue.Empty:
            self.end()
            raise EngineError(f"no answer within {self.seconds:.0f} s") from None
        return self._understood(line)

    def run(self, graph: str, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run a loaded graph and return its outputs by name. Raises :class:`EngineError`."""
        self._count += 1
        sent, received = (self.folder / f"{self._count}.{kind}" for kind in ("in", "out"))
        try:
            tensors = _written(sent, feeds)
            answer = self.ask(do="run", graph=graph, file=str(sent), tensors=tensors, answer=str(received))
            if "aside" in answer:
                self.asides[str(answer["aside"])[:_WORDS]] = None
            return _read(received, answer.get("tensors"))
        except OSError as error:
            raise EngineError(f"its tensors cannot be written: {error.strerror}") from None
        finally:
            sent.unlink(missing_ok=True)
            received.unlink(missing_ok=True)

    def end(self) -> None:
        """End the process, if it has not ended."""
        if self.process.poll() is None:
            with contextlib.suppress(OSError):
                self.process.kill()
        self.process.wait()

    def listen(self) -> None:
        """Collect the answers of the process until it ends, each at most :data:`LONGEST_LINE` long."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline(LONGEST_LINE):
            if self._answers.qsize() > 1:  # more answers than requests
                self.end()
            else:
                self._answers.put(line)
        self._answers.put(b"")

    def _understood(self, line: bytes) -> dict[str, Any]:
        if not line:
            self._answers.put(b"")  # for the next request
            raise EngineError(self._death())
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not line.endswith(b"\n") or not isinstance(answer, dict):
            self.end()
            raise EngineError("the answer of its runner is not what the protocol says")
        if "refused" in answer:
            raise EngineError(str(answer["refused"])[:_WORDS], str(answer.get("node", ""))[:200])
        return answer

    def _death(self) -> str:
        code = self.process.wait()
        with (self.folder / "said").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _SAID))
            said = file.read().decode(errors="replace").strip()
        try:
            ending = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        except ValueError:
            ending = f"with status {code}"
        return f"the process ended {ending}" + (f": {said.splitlines()[-1]}" if said else "")


@contextmanager
def started(engine: Engine, python: Path, seconds: float = SECONDS) -> Iterator[EngineProcess]:
    """Yield an engine in its interpreter; the process ends with the context. Raises :class:`EngineError`.

    Within :func:`kept_processes`, the process ends with that context instead.
    """
    kept = _kept.get()
    if kept is not None:
        yield kept.process(engine, python, seconds)
        return
    with _new_process(engine, python, seconds) as process:
        yield process


@contextmanager
def kept_processes() -> Iterator[None]:
    """Start each engine once for all files of the context, and again only after its process has ended."""
    with ExitStack() as ending:
        token = _kept.set(_Kept(ending))
        try:
            yield
        finally:
            _kept.reset(token)


@dataclass
class _Kept:
    """The processes of a context, which end with it."""

    ending: ExitStack
    processes: dict[Path, EngineProcess] = field(default_factory=dict)

    def process(self, engine: Engine, python: Path, seconds: float) -> EngineProcess:
        """The process of an engine, started if there is none that runs."""
        place = python.parent / engine.name
        process = self.processes.get(place)
        if process is None or process.process.poll() is not None:
            process = self.ending.enter_context(_new_process(engine, python, seconds))
            self.processes[place] = process
        process.engine, process.seconds, process.asides = engine, seconds, {}
        return process


_kept: ContextVar[_Kept | None] = ContextVar("_kept", default=None)


@contextmanager
def _new_process(engine: Engine, python: Path, seconds: float) -> Iterator[EngineProcess]:
    with (
        tempfile.TemporaryDirectory(prefix="zoo-engine-", ignore_cleanup_errors=True) as name,
        (Path(name) / "said").open("wb") as said,
    ):
        process = EngineProcess(engine, _process(engine, python, said), Path(name), seconds)
        listener = threading.Thread(target=process.listen, daemon=True)
        listener.start()
        try:
            answer = process.ask(do="start", options=dict(engine.options))
            process.version = str(answer.get("version", ""))[:100]
            process.lacks = tuple(map(str, answer.get("lacks", ())))
            yield process
        finally:
            process.end()
            listener.join(1)


def _process(engine: Engine, python: Path, said: IO[bytes]) -> subprocess.Popen[bytes]:
    own = {} if python == Path(sys.executable) else {"PYTHONPATH": "", "PYTHONHOME": ""}
    environment = {name: value for name, value in {**os.environ, **own}.items() if value}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    try:
        return subprocess.Popen(
            [python, engine.runner, python.parent.parent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            env=environment,
        )
    except OSError as error:
        raise EngineError(f"{python} cannot be started: {error.strerror}") from None


def _written(path: Path, arrays: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Write arrays to a file one after another, and return the name, dtype, shape and offset of each."""
    tensors, offset = [], 0
    with path.open("wb") as file:
        for name, array in arrays.items():
            file.write(np.ascontiguousarray(array).tobytes())
            tensors.append(
                {"name": name, "dtype": array.dtype.str, "shape": [*array.shape], "offset": offset}
            )
            offset += array.nbytes
    return tensors


def _read(path: Path, tensors: Any) -> dict[str, Array]:
    """The arrays of a file, each within its bytes. Raises :class:`EngineError` for anything else."""
    arrays = dict[str, Array]()
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            for tensor in tensors:
                dtype, shape, offset = (
                    tensor["dtype"],
                    [int(dim) for dim in tensor["shape"]],
                    int(tensor["offset"]),
                )
                if not _DTYPE.fullmatch(dtype) or min([offset, *shape], default=0) < 0:
                    raise ValueError
                count = math.prod(shape)
                if offset + count * np.dtype(dtype).itemsize > size:
                    raise ValueError
                file.seek(offset)
                arrays[str(tensor["name"])] = np.fromfile(file, dtype, count).reshape(shape)
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        raise EngineError("the tensors of its runner are not what the protocol says") from None
    return arrays
