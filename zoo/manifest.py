"""What an exported directory records of itself: ``export.json``, and ``build.json`` beside it.

``export.json`` is a function of the inputs alone: spec, weights, options and versions.  Its SHA-256 therefore names the
export, whoever built it and wherever.  What depends on the machine (the verification, where the weights were read) is
in ``build.json``, which names the ``export.json`` that it speaks of by digest.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)
from pydantic_core import from_json

from specs.base import Spec, custom_error
from specs.document import Document
from specs.errors import Mark, Problem, SpecError, SpecPath, UserError
from specs.validation import problems
from zoo.destination import MANIFEST
from zoo.files.ownership import BUILD

FORMAT: Final = 2
"""The format of both files; the first had no digests, and one file for both."""

_REMEDY = "copy the directory again, or export the model again"

Count = Annotated[int, Field(ge=0)]


def _inside(name: str) -> str:
    """A path that stays in the directory."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name or "\\" in name:
        raise custom_error("must be a path inside the directory", "")
    return name


FileName = Annotated[str, AfterValidator(_inside)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Record(BaseModel):
    """A part of a record: immutable, strict about types, and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FileRecord(Record):
    """A file of the export: its size in bytes, and its SHA-256."""

    size: Count
    sha256: Digest


class TensorRecord(Record):
    """A weight as stored: where its bytes lie in the data file, and their SHA-256."""

    offset: Count
    length: Count
    sha256: Digest


class CacheRecord(Record):
    """How a client holds the keys and values of a graph's own tokens.

    ``kind`` is "shared" where past and present may be one buffer with room to spare, else "growing"; ``padding`` is the
    side on which rows are padded; ``length`` is that of the buffer, where the graph fixes it.  ``precision`` is that of a
    quantized cache: tensors of int8, or of uint8 with two 4-bit codes in a byte.
    """

    kind: Literal["growing", "shared"] = "growing"
    padding: Literal["either", "right"] = "either"
    length: Annotated[int, Field(gt=0)] | None = None
    precision: Literal["int8", "int4"] | None = None

    @model_serializer(mode="wrap")
    def _without_none(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in written(self).items() if value is not None}


class CheckRecord(Record):
    """The ONNX checker that found no fault, and how many of the results that are read have a known rank."""

    checker: str
    shape_inference: str
    results: Count
    ranked: Count


class GraphRecord(Record):
    """What a client wants to know of a graph before it loads it.

    ``context_length`` is the most tokens of a row that it takes, padding included; None where nothing limits it.
    """

    nodes: Count
    opset: Count
    ir_version: Count
    minimum_runtime: str
    operations: dict[str, Count]
    unfused: tuple[str, ...]
    checked: CheckRecord
    context_length: Annotated[int, Field(gt=0)] | None
    inputs: dict[str, tuple[int | str, ...]]
    outputs: dict[str, tuple[int | str, ...]]


class ShapingRecord(Record):
    """The options that shape the files, beside target, precision and layout."""

    via: Literal["fx", "torch"]
    logits: Literal["all", "last"]
    block_size: Annotated[int, Field(gt=0)]
    asymmetric: bool
    head_precision: str
    cache_length: Annotated[int, Field(gt=0)] | None
    cache_precision: str = "float"
    activations: Literal["dynamic", "static"] | None = None


class BlocksRecord(Record):
    """The layout of quantized blocks: the fields of :class:`zoo.weights.blocks.Blocks`."""

    bits: Annotated[int, Field(gt=0)]
    size: Annotated[int, Field(gt=0)] | None
    symmetric: bool
    half: bool
    base: Count | None


class QuantizedRecord(Record):
    """The weights that the checkpoint stores in one quantized ``format``.

    ``carried``: the export stores the same codes and scales in the same ``blocks``; otherwise the weights are dequantized, and
    then stored as the precision says.  ``carried_by`` lists the precisions that carry them on the same target.
    """

    format: str
    carried: bool
    blocks: BlocksRecord | None
    carried_by: tuple[str, ...]
    weights: tuple[str, ...]


class GroupRecord(Record):
    """Matrices that are stored alike: their bits, their blocks (null: float16), and their bytes, scales included.

    ``raised``: they have more bits than the precision gives.  ``cost`` is what fewer bits cost, or would cost, alone: KL
    divergence in nats, or 1 - cosine; null where there was no choice.
    """

    name: str
    weights: Annotated[tuple[str, ...], Field(min_length=1)]
    bits: Annotated[int, Field(gt=0)]
    blocks: BlocksRecord | None
    raised: bool
    cost: float | None
    bytes: Count


class MixedRecord(Record):
    """Mixed precision: the ``budget`` given, the ``size`` of the data file in bytes, and the groups, the dearest first."""

    budget: str
    size: Count
    bits_per_weight: float
    groups: tuple[GroupRecord, ...]


class InputsRecord(Record):
    """The representative inputs that weights were rounded for, or that rounding was judged on, and the SHA-256 of the text or the arrays that they are from."""

    description: str
    sha256: Digest | None


class Manifest(Record):
    """``export.json``: what was exported, and the digests of every file and every weight.

    ``weights`` says what they are, and ``seed`` from which seed they were drawn if they are random; ``zoo``, ``torch`` and
    ``onnx`` are the versions that wrote the files.  ``quantized`` lists the weights that the checkpoint stores in few bits, and
    ``mixed`` the groups of matrices whose bits a size budget decided.
    ``tensors`` has the weights of each data file by name.
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
    files: dict[FileName, FileRecord]
    tensors: dict[FileName, dict[str, TensorRecord]]
    calibrated_on: InputsRecord | None = None
    judged_on: InputsRecord | None = None

    @property
    def model_files(self) -> list[str]:
        """The graphs, and the files of their weights."""
        return [name for name in self.files if name in self.graphs or name in self.tensors]


class ComparisonRecord(Record):
    """One output of one case of the verification; null stands for what is infinite."""

    model_config = ConfigDict(extra="allow")

    case: str
    shape: str
    output: str
    max_abs: float | None
    max_rel: float | None
    tolerance: float
    top_token: float | None
    passed: bool
    fault: str


class VerificationRecord(Record):
    """The comparisons of the files with the PyTorch model, and what they ran on."""

    model_config = ConfigDict(extra="allow")

    provider: str
    runtime: str
    subject: str
    ran: str
    passed: bool
    comparisons: tuple[ComparisonRecord, ...]

    @property
    def max_abs(self) -> float | None:
        """The largest difference of all; None where one is infinite."""
        found = [each.max_abs for each in self.comparisons]
        return None if None in found else max((each for each in found if each is not None), default=0.0)


class BudgetRecord(Record):
    """The figure that was held to a limit: at most a KL divergence, or at least a cosine."""

    measure: str
    limit: float
    precision: str


class QualityRecord(Record):
    """How far the files are from the float model on representative inputs: figures by name, and their budget."""

    model_config = ConfigDict(extra="allow")

    inputs: str
    reference: str
    figures: dict[str, float]
    budget: BudgetRecord | None
    passed: bool


class Build(Record):
    """``build.json``: what depends on the machine that built the export.

    ``export`` is the SHA-256 of the ``export.json`` that it is about; ``weights_from`` says where they were read.
    """

    format: Literal[2]
    export: Digest
    weights_from: str
    verification: VerificationRecord | None
    quality: QualityRecord | None = None


@dataclass(frozen=True)
class ExportRecord:
    """What an exported directory records of itself.

    ``build`` is None where there is no ``build.json`` that speaks of these files; ``unproven`` then says why.
    """

    directory: Path
    manifest: Manifest
    build: Build | None
    unproven: str = ""

    @property
    def verification(self) -> VerificationRecord | None:
        """How the files were verified, if they were."""
        return None if self.build is None else self.build.verification


Top = TypeVar("Top", Manifest, Build)


def read_record(directory: Path) -> ExportRecord:
    """All that an export recorded.  Raises :class:`specs.errors.UserError` for a damaged record."""
    manifest = read_manifest(directory)
    if not (directory / BUILD).is_file():
        return ExportRecord(directory, manifest, None, f"there is no {BUILD}")
    build = _read(directory / BUILD, Build)
    if build.export != hashlib.sha256((directory / MANIFEST).read_bytes()).hexdigest():
        return ExportRecord(directory, manifest, None, f"{BUILD} speaks of another {MANIFEST}")
    return ExportRecord(directory, manifest, build)


def read_manifest(directory: Path) -> Manifest:
    """What an export recorded of itself.  Raises :class:`specs.errors.UserError` where there is none, or a damaged one."""
    return _read(directory / MANIFEST, Manifest)


def _read(path: Path, record: type[Top]) -> Top:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}\n  {_REMEDY}") from None
    try:
        data: Any = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}\n  {_REMEDY}") from None
    if not isinstance(data, dict) or not ("format" in data or "zoo" in data):
        raise UserError(f"{path} is not that of an export\n  export the model again")
    if data.get("format") != FORMAT:
        of = data.get("format", 1)
        raise UserError(
            f"{path} has format {of!r}, and this version of zoo reads {FORMAT}\n  export the model again"
        )
    try:
        return record.model_validate_json(content)
    except ValidationError as error:
        raise SpecError(_told(path, problems(error, Document(data), Spec))) from None


def _place(path: SpecPath) -> SpecPath:
    """A path without pydantic's mark of a key that is wrong itself."""
    return path[:-1] if path[-1:] == ("[key]",) else path


def _told(path: Path, found: list[Problem]) -> list[Problem]:
    """The problems of a file, and once what to do."""
    mark = Mark(str(path))
    first, *others = [Problem(each.rule, _place(each.path), each.value, mark=mark) for each in found]
    return [replace(first, remedy=_REMEDY), *others]
