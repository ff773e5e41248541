"""The parts of what an exported directory records of itself (:mod:`zoo.record.manifest`)."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from specs.base.base import custom_error
from specs.files.export_options import CacheOptions, GraphOptions

Count = Annotated[int, Field(ge=0, lt=2**63)]

_LONGEST_NAME, _DEEPEST = 255, 16


def _inside(name: str) -> str:
    """A path that stays in the directory, on every system, and is written in one way only."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name or ":" in name:
        raise custom_error("must be a path inside the directory", "")
    if "/".join(path.parts) != name or not name.isprintable():
        raise custom_error("must be a plain path: printable, without empty parts", "")
    if max(len(part.encode()) for part in path.parts) > _LONGEST_NAME or len(path.parts) > _DEEPEST:
        raise custom_error(f"must have parts of at most {_LONGEST_NAME} bytes, and at most {_DEEPEST}", "")
    return name


def distinct(files: dict[str, FileRecord]) -> dict[str, FileRecord]:
    """The files by name, which differ in more than case, as on many systems two others would be one file."""
    folded = {name.casefold() for name in files}
    if len(folded) < len(files) or any(
        str(parent) in folded for name in folded for parent in PurePosixPath(name).parents
    ):
        raise custom_error("must not name one file twice, or a file as a directory", "")
    return files


FileName = Annotated[str, AfterValidator(_inside)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Record(BaseModel):
    """A part of a record: immutable, strict about types, and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


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
    """The layout of a client's KV cache.

    ``kind`` is "shared" where past and present may be one buffer with room to spare, else "growing"; ``padding`` is the
    side on which rows are padded; ``length`` is that of the buffer, where the graph fixes it.  ``precision`` is that of a
    quantized cache: tensors of int8, or of uint8 with two 4-bit codes in a byte.  ``constant`` names the inputs that hold a
    state without a length, such as that of a short convolution: it begins with zeros.  ``windows`` are the slots of caches that hold
    a window alone, by the name of their length; rows of a batch are then as long as each other, without padding ("none").
    """

    kind: Literal["growing", "shared"] = "growing"
    padding: Literal["either", "right", "none"] = "either"
    length: Annotated[int, Field(gt=0)] | None = None
    precision: Literal["int8", "int4"] | None = None
    constant: tuple[str, ...] = ()
    windows: dict[str, Annotated[int, Field(gt=0)]] = {}

    @model_serializer(mode="wrap")
    def _without_none(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in written(self).items() if value not in (None, (), [], {})}


class CheckRecord(Record):
    """The ONNX checker that found no fault, and how many of the results that are read have a known rank."""

    checker: str
    shape_inference: str
    results: Count
    ranked: Count


class PlacementRecord(Record):
    """The nodes of a graph that an execution provider leaves to the CPU, by the table of its ``kernels``.

    ``on_cpu`` counts them by operation and element type, ``copies`` the tensors that move for them. ``not_captured`` is the
    reason why the graph cannot be captured as a CUDA graph; empty if it can.
    """

    provider: str
    kernels: str
    on_cpu: dict[str, Count]
    copies: Count
    not_captured: str


class GraphRecord(Record):
    """Facts that a client needs before it loads a graph.

    ``context_length`` is the most tokens of a row that it takes, padding included; None if nothing limits it.
    ``environment`` are the variables without which the runtime refuses the graph.  ``minimum_without_vnni`` is the first runtime
    that computes its 8-bit products exactly on x86-64 processors without VNNI; None if it has no such products.
    ``session_entries`` are the session configuration entries that this takes. ``placement`` is None for targets whose provider
    has no table of kernels.
    """

    nodes: Count
    opset: Count
    ir_version: Count
    minimum_runtime: str
    minimum_without_vnni: str | None = None
    session_entries: dict[str, str] = {}
    environment: dict[str, str] = {}
    operations: dict[str, Count]
    unfused: tuple[str, ...]
    placement: PlacementRecord | None = None
    checked: CheckRecord
    context_length: Annotated[int, Field(gt=0)] | None
    inputs: dict[str, tuple[int | str, ...]]
    outputs: dict[str, tuple[int | str, ...]]


class ShapingRecord(CacheOptions, GraphOptions, Record):
    """The options that shape the files, in addition to target, precision and layout."""


class BlocksRecord(Record):
    """The layout of quantized blocks: the fields of :class:`zoo.weights.blocks.Blocks`."""

    bits: Annotated[int, Field(gt=0)]
    size: Annotated[int, Field(gt=0)] | None
    symmetric: bool
    half: bool
    base: Count | None
    positive: bool
    floats: bool = False


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


class ComparisonRecord(Record):
    """One output of one case of the verification; null is infinity."""

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


class CompiledRecord(Record):
    """A file that a compiler made of a ``graph`` ahead of time, for machines of some ``architectures``."""

    graph: FileName
    engine: str
    version: str
    architectures: Annotated[tuple[str, ...], Field(min_length=1)]


class EngineClaim(Record):
    """An engine that the files are proven on: it ``computed`` them, or ``compiled`` them for its ``architectures``."""

    engine: str
    version: str
    outcome: Literal["computed", "compiled", "failed", "not tried"]
    architectures: tuple[str, ...]

    @property
    def name(self) -> str:
        """The engine with its version."""
        has_version = self.engine.endswith(f"-{self.version}")  # onnxruntime-1.23.2
        return self.engine if has_version else f"{self.engine} {self.version}".rstrip()


class EngineRecord(EngineClaim):
    """The result of an engine on the machine that built the files: see :class:`exporters.verification.engines.result.EngineResult`."""

    cases: Count
    max_abs: float | None
    rounded: float | None
    node: str
    words: str
    untried: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The result in words."""
        if self.outcome == "compiled":
            return f"{self.name}: compiled for {', '.join(self.architectures)}; nothing was computed"
        if self.outcome != "computed" or self.max_abs is None:
            return f"{self.name}: {self.outcome}{f' at node {self.node}' if self.node else ''}: {self.words}"
        rounded = f"; as stored {self.rounded:.1e} from ONNX Runtime" if self.rounded else ""
        cases = f"{self.cases} case{'s' if self.cases != 1 else ''}"
        untried = "".join(f"; {engine}" for engine in self.untried)
        return f"{self.name}: computed, largest difference {self.max_abs:.1e} in {cases}{rounded}{untried}"


class VerificationRecord(Record):
    """The comparisons of the files with the PyTorch model, and what they ran on."""

    model_config = ConfigDict(extra="allow")

    provider: str
    runtime: str
    subject: str
    ran: str
    passed: bool
    comparisons: tuple[ComparisonRecord, ...]
    engines: tuple[EngineRecord, ...] = ()

    @property
    def max_abs(self) -> float | None:
        """The largest difference of all; None if one is infinite."""
        differences = [value.max_abs for value in self.comparisons]
        return (
            None
            if None in differences
            else max((value for value in differences if value is not None), default=0.0)
        )


class BudgetRecord(Record):
    """The figure that was held to a limit: at most a KL divergence, or at least a cosine."""

    measure: str
    limit: float
    precision: str


class QualityRecord(Record):
    """The difference from the float model on representative inputs: figures by name, and their budget."""

    model_config = ConfigDict(extra="allow")

    inputs: str
    reference: str
    figures: dict[str, float]
    budget: BudgetRecord | None
    passed: bool
    kinds: dict[str, dict[str, float]] = {}
    """The figures by kind of text, if the inputs have several."""
