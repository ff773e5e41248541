"""Synthetic tasks: each needs one particular ability of a transformer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from zoo.training.passage import Passage
from zoo.training.task import Part, TrainingTask
from zoo.training.task_names import ADDITION, COPY, RECALL, REVERSE


def _drawn(below: int, rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.randint(below, (rows, columns), generator=generator)


def _all_scored(prompt: Tensor, answer: Tensor) -> Passage:
    return Passage(prompt, answer, torch.ones_like(answer, dtype=torch.bool))


@dataclass(frozen=True)
class Copy(TrainingTask):
    """x1 ... xn -> x1 ... xn: each answer is at a fixed distance."""

    name: ClassVar[str] = COPY
    explanation: ClassVar[str] = "say the symbols again"
    usual_length: ClassVar[int] = 8

    @property
    def tokens(self) -> int:
        return 16

    @property
    def sizes(self) -> tuple[int, int]:
        return self.length, self.length

    def draw(self, part: Part, rows: int, generator: torch.Generator) -> Passage:
        x = _drawn(self.tokens, rows, self.length, generator)
        return _all_scored(x, self.answer(x))

    def answer(self, x: Tensor) -> Tensor:
        """The continuation of the symbols: B n -> B n."""
        return x


@dataclass(frozen=True)
class Reverse(Copy):
    """x1 ... xn -> xn ... x1: the distance of each answer depends on its position, so positions must be known."""

    name: ClassVar[str] = REVERSE
    explanation: ClassVar[str] = "say the symbols backwards"

    def answer(self, x: Tensor) -> Tensor:
        return x.flip(1)


@dataclass(frozen=True)
class Recall(TrainingTask):
    """k1 v1 ... kn vn -> ki vi kj vj ...: the value after each key (associative recall).

    All keys are queried, in another order; keys are unique within a passage.
    """

    name: ClassVar[str] = RECALL
    explanation: ClassVar[str] = "say the value that stood behind each key"
    usual_length: ClassVar[int] = 4
    values: ClassVar[int] = 8

    @property
    def tokens(self) -> int:
        return self.values + 2 * self.length

    @property
    def chance(self) -> float:
        return math.log(self.values)

    @property
    def sizes(self) -> tuple[int, int]:
        return 2 * self.length, 2 * self.length

    def draw(self, part: Part, rows: int, generator: torch.Generator) -> Passage:
        shuffled = torch.rand(rows, 2 * self.length, generator=generator).argsort(1)
        keys = shuffled[:, : self.length] + self.values
        values = _drawn(self.values, rows, self.length, generator)
        order = torch.rand(rows, self.length, generator=generator).argsort(1)
        prompt = torch.stack((keys, values), 2).flatten(1)
        asked = torch.stack((keys.gather(1, order), values.gather(1, order)), 2).flatten(1)
        return Passage(prompt, asked, (torch.arange(2 * self.length) % 2 == 1).expand_as(asked))


@dataclass(frozen=True)
class Addition(TrainingTask):
    """a1 ... an b1 ... bn -> a1 + b1 ... an + bn, modulo 5: two positions combine, by a learned table."""

    name: ClassVar[str] = ADDITION
    explanation: ClassVar[str] = "add two rows of numbers modulo 5"
    usual_length: ClassVar[int] = 4

    @property
    def tokens(self) -> int:
        return 5

    @property
    def sizes(self) -> tuple[int, int]:
        return 2 * self.length, self.length

    def draw(self, part: Part, rows: int, generator: torch.Generator) -> Passage:
        prompt = _drawn(self.tokens, rows, 2 * self.length, generator)
        first, second = prompt.chunk(2, 1)
        return _all_scored(prompt, (first + second) % self.tokens)
