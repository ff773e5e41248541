"""The first claim repeated on a deployment machine: an export's recorded case on an engine, or the compilation of its graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from exporters.target.environment import required_environment
from exporters.target.providers import on_provider
from exporters.target.session_options import open_session, opset_of, session_options
from exporters.verification.engines.check import check_engines, check_installed
from exporters.verification.engines.compiling import recorded_shapes
from exporters.verification.engines.engine import Engine
from exporters.verification.engines.find import interpreter_of
from exporters.verification.engines.graphs import data_files, nodes_by_operation
from exporters.verification.engines.process import EngineError, EngineProcess, started
from exporters.verification.engines.result import EngineResult
from exporters.verification.engines.table import engine_named
from zoo.record.certificate import Certificate, Run, certify, run_session
from zoo.record.integrity import check_integrity
from zoo.record.manifest import ExportRecord, read_record


def replay(directory: Path, engine: Engine) -> tuple[Certificate, EngineResult]:
    """Compare the files of an export with their digests, then run them on an engine.

    Raises :class:`specs.base.errors.UserError` for an engine that is missing or does not take the export.
    """
    record = read_record(directory)
    check_engines([engine.name], record.manifest.target, verify=True)
    check_installed([engine.name])
    python, version = interpreter_of(engine), ""
    assert python is not None
    certificate = Certificate(str(directory))
    try:
        with started(engine, python) as process:
            version = process.version
            if engine.shows == "compiles":
                return _compiled(record, process)
            certificate = certify(directory, load=partial(_load, directory, process))
    except EngineError as error:
        return certificate, EngineResult(engine.name, version, "failed", node=error.node, words=error.words)
    result = _result(engine, version, certificate, process.asides)
    certificate.provider = result.claim.name
    return certificate, result


def replay_all(directory: Path, names: Sequence[str]) -> list[tuple[Certificate, EngineResult]]:
    """Replay on several engines, after all of them are checked.

    Raises :class:`specs.base.errors.UserError` for an engine that is missing or does not take the export.
    """
    check_engines(names, read_record(directory).manifest.target, verify=True)
    check_installed(names)
    return [replay(directory, engine_named(name)) for name in names]


def joined(replays: Sequence[tuple[Certificate, EngineResult]]) -> Certificate:
    """Return one certificate for several engines: faults that not all have are preceded by the engine's name."""
    certificates = [certificate for certificate, _ in replays]
    first = certificates[0]
    common = [fault for fault in first.faults if all(fault in other.faults for other in certificates)]
    faults = list(common)
    for certificate, result in replays:
        faults += [f"{result.claim.name}: {fault}" for fault in certificate.faults if fault not in common]
        faults += [] if result.passed or certificate.faults else [str(result)]
    notes = dict.fromkeys(certificate.note for certificate in certificates if certificate.note)
    files = max(certificate.files for certificate in certificates)
    return Certificate(first.directory, files=files, faults=faults, note=" ".join(notes))


def replay_on(directory: Path, provider: str) -> Certificate:
    """Replay on an ONNX Runtime provider by name. Raises :class:`specs.base.errors.UserError` if it is not available."""
    chosen = on_provider(provider)
    certificate = certify(directory, load=partial(_open, directory, chosen))
    certificate.provider = chosen[0]
    return certificate


def _open(directory: Path, providers: list[str], graphs: dict[str, Any]) -> dict[str, Run]:
    return {
        name: partial(
            run_session, open_session(directory / name, session_options(directory / name, entries), providers)
        )
        for name, entries in graphs.items()
    }


def _result(engine: Engine, version: str, certificate: Certificate, asides: Iterable[str]) -> EngineResult:
    if certificate.faults:
        return EngineResult(engine.name, version, "failed", words=certificate.faults[0])
    if not certificate.outputs:
        return EngineResult(engine.name, version, "not tried", words=certificate.note)
    largest = max(difference for difference, _ in certificate.outputs.values())
    return EngineResult(engine.name, version, "computed", cases=1, max_abs=largest, untried=tuple(asides))


def _load(directory: Path, process: EngineProcess, graphs: dict[str, Any]) -> dict[str, Run]:
    for name, entries in graphs.items():
        path = directory / name
        graph = onnx.load(path, load_external_data=False).graph
        options = {
            "data": data_files(graph),
            "entries": entries,
            "environment": required_environment(opset_of(path)),
            "nodes": nodes_by_operation(graph),
        }
        process.ask(do="load", graph=name, path=str(path.absolute()), options=options)
    return {name: partial(process.run, name) for name in graphs}


def _compiled(record: ExportRecord, process: EngineProcess) -> tuple[Certificate, EngineResult]:
    directory, manifest = record.directory, record.manifest
    certificate = Certificate(str(directory), process.engine.name, len(record.files))
    certificate.faults = [str(change) for change in check_integrity(record, contents=True).changes]
    if certificate.faults:
        return certificate, EngineResult(
            process.engine.name, process.version, "failed", words=certificate.faults[0]
        )
    architectures: list[str] = []
    for name, inputs in recorded_shapes(directory, manifest).items():
        path = str((directory / name).absolute())
        answer = process.ask(do="compile", path=path, options={"inputs": inputs})
        architectures = [str(name) for name in answer.get("architectures", ())]
    return certificate, EngineResult(
        process.engine.name, process.version, "compiled", architectures=tuple(architectures)
    )
