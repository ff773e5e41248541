"""The interface of tasks."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from specs.model.model import Architecture
from zoo.training.passage import SPECIALS, Passage

Part = Literal["training", "held out"]


@dataclass(frozen=True)
class TrainingTask(ABC):
    """A source of passages, determined by part, seed and step: the same for every model and after resuming.

    ``length``: that of a passage, in the task's own unit.
    """

    length: int

    name: ClassVar[str]
    explanation: ClassVar[str]
    usual_length: ClassVar[int]
    architectures: ClassVar[tuple[Architecture, ...]] = ("encoder", "decoder", "encoder-decoder")

    @property
    @abstractmethod
    def tokens(self) -> int:
        """The number of the task's own tokens."""

    @property
    def chance(self) -> float:
        """The loss of guessing by answer frequency alone, in nats per token."""
        return math.log(self.tokens)

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """The number of tokens of a prompt and of its continuation."""

    @abstractmethod
    def draw(self, part: Part, rows: int, generator: torch.Generator) -> Passage:
        """Random passages."""

    @property
    def vocabulary(self) -> int:
        """The vocabulary of a model for the task."""
        return self.tokens + SPECIALS

    def lengths(self, architecture: Architecture) -> dict[str, int]:
        """The number of tokens that each stack of a model reads."""
        prompt, continuation = self.sizes
        return {
            "decoder": {"decoder": prompt + continuation},
            "encoder": {"encoder": prompt + 1 + continuation},
            "encoder-decoder": {"encoder": prompt, "decoder": continuation},
        }[architecture]

    def passage(self, part: Part, rows: int, seed: int, step: int) -> Passage:
        """The passages of a step."""
        digest = hashlib.sha256(f"{seed}/{part}/{step}".encode()).digest()
        number = int.from_bytes(digest[:8], "little", signed=True)
        return self.draw(part, rows, torch.Generator().manual_seed(number))

    def as_dict(self) -> dict[str, Any]:
        """As JSON data: everything that determines the passages."""
        return {"name": self.name, "length": self.length}
