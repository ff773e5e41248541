"""What every task answers."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from specs.model import Architecture
from zoo.training.passage import SPECIALS, Passage

Part = Literal["training", "held out"]


@dataclass(frozen=True)
class Task(ABC):
    """A source of passages: a function of a part, a seed and a step, so the same for every model and after a pause.

    ``length`` is how long a passage is, in the task's own unit.
    """

    length: int

    name: ClassVar[str]
    explanation: ClassVar[str]
    usual_length: ClassVar[int]
    architectures: ClassVar[tuple[Architecture, ...]] = ("encoder", "decoder", "encoder-decoder")

    @property
    @abstractmethod
    def tokens(self) -> int:
        """How many tokens the task has of its own."""

    @property
    def chance(self) -> float:
        """The loss of who knows how often each answer occurs, and nothing of the passage: nats per token."""
        return math.log(self.tokens)

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """Tokens of a prompt and of its continuation."""

    @abstractmethod
    def draw(self, part: Part, rows: int, generator: torch.Generator) -> Passage:
        """Random passages."""

    @property
    def vocabulary(self) -> int:
        """The vocabulary of a model for the task."""
        return self.tokens + SPECIALS

    def lengths(self, architecture: Architecture) -> dict[str, int]:
        """How many tokens each stack of a model reads."""
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
        """As JSON data: all that decides what the task gives."""
        return {"name": self.name, "length": self.length}
