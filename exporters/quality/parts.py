"""Examples in two parts, one to calibrate on and one to judge on, and how many of each are taken."""

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
"""The largest number of windows to calibrate on: the statistics of a layer's inputs improve with them."""

SENTENCES = 200
"""The same for an encoder's sentences."""

SOURCES = 12
"""The same for the inputs of an encoder-decoder, which are expensive."""

BATCH = 8
"""The number of inputs in a batch of an encoder."""

SOURCES_CALIBRATING = 64
"""The largest number of calibration texts of an encoder-decoder."""


class NoInputsError(UserError):
    """There are no representative inputs to judge a model on."""


@dataclass(frozen=True, eq=False)
class Representative:
    """The representative inputs of a model.

    ``calibration`` and ``judged`` share no token; ``sha256`` is the digest of the source.
    """

    description: str
    calibration: list[Example]
    judged: list[Example]
    sha256: str | None = None

    @property
    def size(self) -> str:
        """The size of the judged part, such as ``12 x 256 tokens``."""
        return size_of(self.judged)


class Most(NamedTuple):
    """The largest numbers of examples to calibrate on and to judge."""

    calibrating: int
    judged: int


def parted(name: str, sha256: str, rows: list[Example], share: int, most: Most, what: str) -> Representative:
    """The first part of some examples for calibration, and some of the others for judging."""
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
    """The name of the source without its directory: records of an export name no path of this machine."""
    return f"{Path(name).name}, {size}"


def most_of(spec: Model) -> Most:
    """The largest number of examples taken."""
    if spec.architecture == "encoder-decoder":
        takes_tokens = spec.embedding_of(spec.first_stack).takes_tokens
        return Most(SOURCES_CALIBRATING if takes_tokens else SOURCES, SOURCES)
    if spec.decodes:
        return Most(CALIBRATING, WINDOWS)
    return Most(SENTENCES, SENTENCES)


def size_of(examples: Sequence[Example]) -> str:
    """The size of some token ids, such as ``12 x 256 tokens``."""
    lengths = {example["input_ids"].shape[1] for example in examples}
    rows = sum(len(example["input_ids"]) for example in examples)
    return f"{rows} x {lengths.pop()} tokens" if len(lengths) == 1 else f"{rows} rows"


def batched(spec: Model, examples: list[Example]) -> list[Example]:
    """Examples of a model without a decoder in batches, and others one by one."""
    if spec.decodes:
        return examples
    return [joined(examples[at : at + BATCH]) for at in range(0, len(examples), BATCH)]
