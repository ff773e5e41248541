"""Ahead-of-time compilation of an export, for machines other than this one."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from exporters.verification.engines.check import check_installed
from exporters.verification.engines.compiling import recorded_shapes
from exporters.verification.engines.engine import Engine
from exporters.verification.engines.find import interpreter_of
from exporters.verification.engines.process import started
from exporters.verification.engines.table import ENGINES
from specs.base.errors import UserError, option_name
from specs.base.suggest import suggestion
from zoo.core.progress import Progress, Stage
from zoo.files.destination import MANIFEST
from zoo.files.ownership import BUILD, SIGNATURE
from zoo.files.whole import write_file
from zoo.record.integrity import check_integrity, file_record
from zoo.record.manifest import ExportRecord, Manifest, read_record
from zoo.record.records import CompiledRecord

SECONDS = 4 * 3600.0
"""The time limit for compiling one graph, in seconds."""

SUFFIX = ".engine"


@dataclass(frozen=True)
class Compiled:
    """A compiled file: its path in the export, its record, and the seconds that the compiler took."""

    path: str
    record: CompiledRecord
    seconds: float


def compile_export(
    directory: Path, architectures: Sequence[str], progress: Progress = lambda stage: None
) -> list[Compiled]:
    """Compile the graphs of an export for some architectures; return the new files.

    The files are next to their graphs, and ``export.json`` has their digests. Raises :class:`specs.base.errors.UserError` for
    architectures that the compiler does not know, and exports that it does not take; and
    :class:`exporters.verification.engines.process.EngineError`, with nothing written, for a graph that does not compile.
    """
    record = read_record(directory)
    engine = _compiler(record.manifest, directory)
    _check_architectures(engine, architectures)
    if (directory / SIGNATURE).exists():
        raise UserError(
            f"{directory} is signed, and compiled files change what was signed\n"
            f"  Delete {SIGNATURE}, compile, and sign it again."
        )
    check_installed([engine.name])
    progress(Stage("compare digests"))
    if changes := check_integrity(record, contents=True).changes:
        raise UserError(f"{directory} has changed since it was exported: {changes[0]}\n  Export it again.")
    with TemporaryDirectory(dir=directory, prefix=".compiled-") as name:
        compiled = _compiled(record.manifest, directory, Path(name), engine, architectures, progress)
        for file in compiled:
            os.replace(Path(name) / PurePosixPath(file.path).name, directory / file.path)
    _record(record, compiled)
    return compiled


def _compiled(
    manifest: Manifest,
    directory: Path,
    folder: Path,
    engine: Engine,
    architectures: Sequence[str],
    progress: Progress,
) -> list[Compiled]:
    """Compile every graph into files of ``folder``."""
    python = interpreter_of(engine)
    assert python is not None
    compiled = []
    with started(engine, python, SECONDS) as process:
        for graph, inputs in recorded_shapes(directory, manifest).items():
            progress(Stage(f"compile {graph} for {', '.join(architectures)}"))
            path, begun = PurePosixPath(graph).with_suffix(SUFFIX), time.monotonic()
            options = {"inputs": inputs, "architectures": [*architectures], "output": str(folder / path.name)}
            process.ask(do="compile", path=str((directory / graph).absolute()), options=options)
            made = CompiledRecord(
                graph=graph,
                engine=engine.name,
                version=process.version,
                architectures=tuple(architectures),
            )
            compiled.append(Compiled(str(path), made, round(time.monotonic() - begun, 1)))
    return compiled


def _record(record: ExportRecord, compiled: Sequence[Compiled]) -> None:
    """Write the records of compiled files: ``build.json`` first, which names its ``export.json`` by digest."""
    directory, manifest = record.directory, record.manifest
    files = {**manifest.files, **{file.path: file_record(directory / file.path) for file in compiled}}
    records = {file.path: file.record for file in compiled}
    changed = manifest.model_copy(update={"files": dict(sorted(files.items())), "compiled": records})
    content = (changed.model_dump_json(indent=2) + "\n").encode()
    if record.build is not None:
        build = record.build.model_copy(update={"export": hashlib.sha256(content).hexdigest()})
        write_file(directory / BUILD, (build.model_dump_json(indent=2) + "\n").encode())
    write_file(directory / MANIFEST, content)


def _compiler(manifest: Manifest, directory: Path) -> Engine:
    compilers = [engine for engine in ENGINES.values() if engine.architectures]
    for engine in compilers:
        if engine.speaks_for(manifest.target):
            return engine
    targets = ", ".join(sorted({target for engine in compilers for target in engine.targets}))
    raise UserError(
        f"No compiler takes graphs for {option_name('target')} {manifest.target}\n  value: {directory}\n"
        f"  Export it with {option_name('target')} {targets}."
    )


def _check_architectures(engine: Engine, architectures: Sequence[str]) -> None:
    for name in architectures:
        if name not in engine.architectures:
            raise UserError(
                f"{option_name('architectures')} must be architectures that {engine.name} compiles for: "
                f"{', '.join(engine.architectures)}\n  value: {name!r}\n  {suggestion(name, engine.architectures)}"
            )
