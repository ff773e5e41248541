"""Compiled files of an export, written ahead of time for machines that need not be here."""

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
"""The longest that a compiler may take for one graph."""

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

    The files are beside their graphs, and ``export.json`` has their digests. Raises :class:`specs.base.errors.UserError` for
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
        found = _compiled(record.manifest, directory, Path(name), engine, architectures, progress)
        for each in found:
            os.replace(Path(name) / PurePosixPath(each.path).name, directory / each.path)
    _record(record, found)
    return found


def _compiled(
    manifest: Manifest,
    directory: Path,
    place: Path,
    engine: Engine,
    architectures: Sequence[str],
    progress: Progress,
) -> list[Compiled]:
    """Compile every graph into files of ``place``."""
    python = interpreter_of(engine)
    assert python is not None
    found = []
    with started(engine, python, SECONDS) as process:
        for graph, inputs in recorded_shapes(directory, manifest).items():
            progress(Stage(f"compile {graph} for {', '.join(architectures)}"))
            path, begun = PurePosixPath(graph).with_suffix(SUFFIX), time.monotonic()
            options = {"inputs": inputs, "architectures": [*architectures], "output": str(place / path.name)}
            process.ask(do="compile", path=str((directory / graph).absolute()), options=options)
            made = CompiledRecord(
                graph=graph,
                engine=engine.name,
                version=process.version,
                architectures=tuple(architectures),
            )
            found.append(Compiled(str(path), made, round(time.monotonic() - begun, 1)))
    return found


def _record(record: ExportRecord, found: Sequence[Compiled]) -> None:
    """Write the records of compiled files: ``build.json`` first, which names its ``export.json`` by digest."""
    directory, manifest = record.directory, record.manifest
    files = {**manifest.files, **{each.path: file_record(directory / each.path) for each in found}}
    compiled = {each.path: each.record for each in found}
    changed = manifest.model_copy(update={"files": dict(sorted(files.items())), "compiled": compiled})
    content = (changed.model_dump_json(indent=2) + "\n").encode()
    if record.build is not None:
        build = record.build.model_copy(update={"export": hashlib.sha256(content).hexdigest()})
        write_file(directory / BUILD, (build.model_dump_json(indent=2) + "\n").encode())
    write_file(directory / MANIFEST, content)


def _compiler(manifest: Manifest, directory: Path) -> Engine:
    able = [each for each in ENGINES.values() if each.architectures]
    for engine in able:
        if engine.speaks_for(manifest.target):
            return engine
    targets = ", ".join(sorted({target for each in able for target in each.targets}))
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
