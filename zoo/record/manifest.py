"""The records of an exported directory: ``export.json``, and the ``build.json`` next to it.

``export.json`` is a function of the inputs alone: spec, weights, options and versions. Its SHA-256 therefore
identifies the export, whoever built it and wherever. Everything that depends on the machine (the verification, where
the weights were read) is in ``build.json``, which names its ``export.json`` by digest.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import from_json

from specs.base.base import Spec, custom_error
from specs.base.errors import Mark, Problem, SpecError, SpecPath, UserError
from specs.language.document import Document
from specs.language.validation import problems
from zoo.files.destination import MANIFEST
from zoo.files.ownership import BUILD, PROBE
from zoo.files.reading import read_regular, unreadable
from zoo.record.records import (
    CacheRecord,
    CompiledRecord,
    Digest,
    EngineClaim,
    FileName,
    FileRecord,
    GraphRecord,
    InputsRecord,
    MixedRecord,
    QualityRecord,
    QuantizedRecord,
    Record,
    ShapingRecord,
    TensorRecord,
    VerificationRecord,
    distinct,
)

FORMAT: Final = 2
"""The format of both files; the first had no digests, and one file for both."""

_REMEDY = "Copy the directory again, or export the model again."


class Manifest(Record):
    """``export.json``: what was exported, and the digests of every file and every weight.

    ``weights`` says what they are, and ``seed`` from which seed they were drawn if they are random; ``zoo``, ``torch`` and
    ``onnx`` are the versions that wrote the files.  ``quantized`` lists the weights that the checkpoint stores in few bits, and
    ``mixed`` the groups of matrices whose bits a size budget decided.
    ``tensors`` has the weights of each data file by name.  ``engines`` are those that the files were proven on, beside ONNX
    Runtime; ``build.json`` has the differences.  ``compiled`` are the files that a compiler made of the graphs afterwards.
    ``adapters`` are the names of adapters that can be switched on, each in a file ``NAME.onnx_adapter``.
    """

    format: Literal[2]
    zoo: str
    torch: str
    onnx: str
    target: str
    providers: Annotated[tuple[str, ...], Field(min_length=1)]
    precision: str
    layout: str
    options: ShapingRecord
    weights: Literal["none", "random", "checkpoint"]
    seed: int | None
    cache: CacheRecord | None
    graphs: Annotated[dict[FileName, GraphRecord], Field(min_length=1)]
    quantized: tuple[QuantizedRecord, ...] = ()
    mixed: MixedRecord | None = None
    files: Annotated[dict[FileName, FileRecord], AfterValidator(distinct)]
    tensors: dict[FileName, dict[str, TensorRecord]]
    calibrated_on: InputsRecord | None = None
    judged_on: InputsRecord | None = None
    engines: tuple[EngineClaim, ...] = ()
    compiled: dict[FileName, CompiledRecord] = {}
    adapters: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _has_its_models(self) -> Manifest:
        unlisted = [name for name in (*self.graphs, *self.tensors) if name not in self.files]
        if unlisted:
            raise custom_error(
                f"must have the digest of every graph and data file, and has none of {unlisted[0]}", ""
            )
        return self

    @property
    def model_files(self) -> list[str]:
        """The graphs, and the files of their weights."""
        return [name for name in self.files if name in self.graphs or name in self.tensors]

    @property
    def weight_bytes(self) -> int:
        """The size of all data files."""
        return sum(self.files[name].size for name in self.tensors)


class AdapterRecord(Record):
    """An adapter of an export: the ``largest`` difference with it switched on, None where it was not verified, and its quality, if
    rounding was judged."""

    largest: float | None
    quality: QualityRecord | None = None


class Build(Record):
    """``build.json``: what depends on the machine that built the export.

    ``export`` is the SHA-256 of the ``export.json`` that it is about; ``weights_from`` says where they were read.  ``probe``
    is the record of ``probe.npz``, and ``made_from`` has the inputs of an artefact of a zoo file, and their key.
    """

    format: Literal[2]
    export: Digest
    weights_from: str
    verification: VerificationRecord | None
    quality: QualityRecord | None = None
    probe: FileRecord | None = None
    made_from: dict[str, Any] | None = None
    adapters: dict[str, AdapterRecord] = {}


@dataclass(frozen=True)
class ExportRecord:
    """The records of an exported directory.

    ``build`` is None if there is no ``build.json`` for these files; ``unproven`` then says why.
    """

    directory: Path
    manifest: Manifest
    build: Build | None
    unproven: str = ""

    @property
    def files(self) -> dict[str, FileRecord]:
        """The files that the records list: the files of the manifest, and the recorded case."""
        probe = None if self.build is None else self.build.probe
        return {**self.manifest.files, **({PROBE: probe} if probe else {})}

    @property
    def verification(self) -> VerificationRecord | None:
        """How the files were verified, if they were."""
        return None if self.build is None else self.build.verification


Top = TypeVar("Top", Manifest, Build)


def read_record(directory: Path) -> ExportRecord:
    """All that an export recorded.  Raises :class:`specs.base.errors.UserError` for a damaged record."""
    manifest = read_manifest(directory)
    if not os.path.lexists(directory / BUILD):
        return ExportRecord(directory, manifest, None, f"{BUILD} is missing")
    build = _read(directory / BUILD, Build)
    if build.export != hashlib.sha256(_content(directory / MANIFEST)).hexdigest():
        return ExportRecord(directory, manifest, None, f"{BUILD} belongs to another {MANIFEST}")
    return ExportRecord(directory, manifest, build)


def read_manifest(directory: Path) -> Manifest:
    """The records of an export.  Raises :class:`specs.base.errors.UserError` if there is none, or a damaged one."""
    if not os.path.lexists(directory / MANIFEST):
        raise UserError(
            f"{directory} is not an export (no {MANIFEST})\n"
            "  Pass a directory that zoo export or zoo build wrote, such as build/gpt2."
        )
    return _read(directory / MANIFEST, Manifest)


def _read(path: Path, record: type[Top]) -> Top:
    content = _content(path)
    try:
        data: Any = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}\n  {_REMEDY}") from None
    if not isinstance(data, dict) or not ("format" in data or "zoo" in data):
        raise UserError(f"{path} does not belong to an export\n  Export the model again.")
    if data.get("format") != FORMAT:
        of = data.get("format", 1)
        raise UserError(
            f"{path} has format {of!r}, and this version of zoo reads {FORMAT}\n  Export the model again."
        )
    try:
        return record.model_validate_json(content)
    except ValidationError as error:
        raise SpecError(_with_remedy(path, problems(error, Document(data), Spec))) from None


def _content(path: Path) -> bytes:
    try:
        return read_regular(path, path.parent)
    except OSError as error:
        raise UserError(unreadable(path, error, _REMEDY)) from None


def _place(path: SpecPath) -> SpecPath:
    """A path without pydantic's mark of a key that is wrong itself."""
    return path[:-1] if path[-1:] == ("[key]",) else path


def _with_remedy(path: Path, problems: list[Problem]) -> list[Problem]:
    """The problems of a file; the first one says what to do."""
    mark = Mark(str(path))
    first, *others = [
        Problem(problem.rule, _place(problem.path), problem.value, mark=mark) for problem in problems
    ]
    return [replace(first, remedy=_REMEDY), *others]
