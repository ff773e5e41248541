"""Tasks on the bytes of a text file, whose last tenth is held out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from specs.base.errors import UserError, option_name
from specs.model.model import Architecture
from zoo.files.reading import read_regular, unreadable
from zoo.training.passage import Passage
from zoo.training.task import Part, TrainingTask
from zoo.training.task_names import MASKED_BYTE, NEXT_BYTE

BYTES = 256
HELD_OUT = 10
"""The inverse of the held-out fraction."""
MASKED = 0.15
"""The fraction of masked bytes (BERT)."""


@dataclass(frozen=True)
class TextTask(TrainingTask):
    """Random spans of ``length`` bytes, from a file's training part or its held-out tail."""

    content: bytes
    usual_length: ClassVar[int] = 64

    @property
    def tokens(self) -> int:
        return BYTES

    @cached_property
    def parts(self) -> dict[Part, Tensor]:
        """The bytes of each part."""
        every = torch.frombuffer(bytearray(self.content), dtype=torch.uint8)
        border = len(every) - len(every) // HELD_OUT
        return {"training": every[:border], "held out": every[border:]}

    @cached_property
    def chance(self) -> float:
        seen, met = (
            torch.bincount(self.parts[part].to(torch.int64), minlength=BYTES).double()
            for part in ("training", "held out")
        )
        shares = (seen + 1) / (seen + 1).sum()  # every byte has a non-zero probability
        return float(-(met / met.sum() * shares.log()).sum())

    def stretches(self, part: Part, rows: int, generator: torch.Generator) -> Tensor:
        """rows x length bytes as token ids."""
        source = self.parts[part]
        starts = torch.randint(len(source) - self.length + 1, (rows, 1), generator=generator)
        return source[starts + torch.arange(self.length)].to(torch.int64)

    def as_dict(self) -> dict[str, Any]:
        return {
            **super().as_dict(),
            "bytes": len(self.content),
            "sha256": hashlib.sha256(self.content).hexdigest(),
        }


@dataclass(frozen=True)
class NextByte(TextTask):
    """Next-byte prediction; an encoder-decoder encodes the first half and predicts the second."""

    halves: bool = False

    name: ClassVar[str] = NEXT_BYTE
    explanation: ClassVar[str] = "predict each byte of a text from those before it"
    architectures: ClassVar[tuple[Architecture, ...]] = ("decoder", "encoder-decoder")

    @property
    def sizes(self) -> tuple[int, int]:
        prompt = self.length // 2 if self.halves else 0
        return prompt, self.length - prompt

    def draw(self, part: Part, rows: int, generator: torch.Generator) -> Passage:
        stretches = self.stretches(part, rows, generator)
        prompt, continuation = stretches.split(self.sizes, 1)
        return Passage(prompt, continuation, torch.ones_like(continuation, dtype=torch.bool))


@dataclass(frozen=True)
class MaskedByte(TextTask):
    """Masked-byte prediction."""

    name: ClassVar[str] = MASKED_BYTE
    explanation: ClassVar[str] = "predict the masked bytes of a text from those around them"
    architectures: ClassVar[tuple[Architecture, ...]] = ("encoder",)

    @property
    def sizes(self) -> tuple[int, int]:
        return 0, self.length

    def draw(self, part: Part, rows: int, generator: torch.Generator) -> Passage:
        stretches = self.stretches(part, rows, generator)
        chances = torch.rand(stretches.shape, generator=generator)
        scored = (chances < MASKED) | (chances == chances.amin(1, keepdim=True))  # at least one per row
        return Passage(stretches[:, :0], stretches, scored)


def read_text(path: Path, length: int) -> bytes:
    """The bytes of a file.  Raises :class:`UserError` if its held-out part is shorter than ``length``."""
    try:
        content = read_regular(path)
    except OSError as error:
        raise UserError(unreadable(path, error)) from None
    if len(content) // HELD_OUT < length:
        fits = len(content) // HELD_OUT
        remedy = (
            f"Use {option_name('task_length')} {fits} or less, or a longer text."
            if fits > 1
            else "Use a longer text."
        )
        raise UserError(
            f"{path}: must have at least {HELD_OUT * length:,} bytes: a tenth is held out, and a passage has {length}\n"
            f"  value: {len(content):,} bytes\n  {remedy}"
        )
    return content
