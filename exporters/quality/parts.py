"""The split of examples into a calibration part and a judged part, and the size limits of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from exporters.quality.examples import Example, joined
from specs.base.errors import UserError
from specs.model.model import Model

WINDOWS = 12
"""The largest number of windows of a decoder to judge."""

CALIBRATING = 32
"""The largest number of calibration windows of a decoder: more improve the statistics of a layer's inputs."""

SENTENCES = 200
"""The largest number of sentences of an encoder, in either part."""

SOURCES = 12
"""The largest number of inputs of an encoder-decoder to judge; each is expensive."""

BATCH = 8
"""The batch size of an encoder's inputs."""

SOURCES_CALIBRATING = 64
"""The largest number of calibration texts of an encoder-decoder."""


class NoInputsError(UserError):
    """Representative inputs for judging a model are missing."""


@dataclass(frozen=True, eq=False)
class Representative:
    """The representative inputs of a model.

    ``calibration`` and ``judged`` have no token in common; ``sha256`` is the digest of the source.  ``kinds`` are the kinds of
    text of the judged examples; empty where they are all alike.
    """

    description: str
    calibration: list[Example]
    judged: list[Example]
    sha256: str | None = None
    kinds: Sequence[str] = ()

    @property
    def size(self) -> str:
        """The size of the judged part, such as ``12 x 256 tokens``."""
        return size_of(self.judged)


class Most(NamedTuple):
    """The largest numbers of examples in the calibration part and in the judged part."""

    calibrating: int
    judged: int


DECODED = Most(CALIBRATING, WINDOWS)
"""The size limits of a decoder's examples."""


def parted(name: str, sha256: str, rows: list[Example], share: int, most: Most, what: str) -> Representative:
    """Split examples: the first part is for calibration, and some of the others are judged."""
    least = 2 + bool(share)
    if len(rows) < least:
        raise UserError(
            f"{name}: must have at least {least} {what}"
            + (": one calibrates, and two are judged" if share else " to compare")
            + f"\n  value: {len(rows)} {what}\n  Give more."
        )
    border = max(1, len(rows) // share) if share else 0
    judged = rows[border:][: most.judged]
    calibration = rows[:border][: most.calibrating]
    return Representative(described(name, f"{len(judged)} {what}"), calibration, judged, sha256)


def described(name: str, size: str) -> str:
    """The description of a source without its directory: an export's records contain no paths of this machine."""
    return f"{Path(name).name}, {size}"


def most_of(spec: Model) -> Most:
    """The size limits of a model's examples."""
    if spec.architecture == "encoder-decoder":
        takes_tokens = spec.embedding_of(spec.first_stack).takes_tokens
        return Most(SOURCES_CALIBRATING if takes_tokens else SOURCES, SOURCES)
    if spec.decodes:
        return DECODED
    return Most(SENTENCES, SENTENCES)


def rows_of(examples: Sequence[Example]) -> int:
    """The number of rows of some token ids."""
    return sum(len(example["input_ids"]) for example in examples)


def size_of(examples: Sequence[Example]) -> str:
    """The size of some token ids, such as ``12 x 256 tokens``."""
    lengths = {example["input_ids"].shape[1] for example in examples}
    rows = rows_of(examples)
    return f"{rows} x {lengths.pop()} tokens" if len(lengths) == 1 else f"{rows} rows"


def batched(spec: Model, examples: list[Example]) -> list[Example]:
    """Join a model's examples into batches if it has no decoder; otherwise return them unchanged."""
    if spec.decodes:
        return examples
    return [joined(examples[start : start + BATCH]) for start in range(0, len(examples), BATCH)]
