"""Sines and cosines of positions."""

from __future__ import annotations

import math

import torch
from torch import Tensor

import specs.kinds.sinusoidal as spec
from zoo import functional
from zoo.components.linear import EmbeddingTable
from zoo.components.position import Position
from zoo.context import BuildContext
from zoo.registry import builds


def sinusoid_frequencies(spec: spec.Sinusoidal, count: int) -> tuple[float, ...]:
    """``count`` frequencies in radians per position, computed as by the reference of each spacing."""
    if spec.spacing == "paper":
        return tuple(spec.base ** (-i / count) for i in range(count))
    step = math.log(spec.base) / max(1, count - 1)  # in float32 from here on, as tensor2tensor and Whisper
    frequencies: list[float] = torch.exp(
        -step * torch.arange(count, dtype=torch.float32, device="cpu")
    ).tolist()
    return tuple(frequencies)


class SinusoidTable(EmbeddingTable):
    """The sines and cosines of all positions, as an untrained weight."""

    def __init__(self, spec: spec.Sinusoidal, rows: int, frequencies: tuple[float, ...]) -> None:
        super().__init__(rows, 2 * len(frequencies))
        self.weight.requires_grad_(False)
        self.spacing, self.offset, self.frequencies = spec.spacing, spec.offset, frequencies
        self.interleaved = spec.layout == "interleaved"

    def fixed(self, leaf: str) -> Tensor:
        """The values if a checkpoint has none: in float64 as the references compute them, or float32 for Whisper."""
        dtype = torch.float64 if self.spacing == "paper" else torch.float32
        frequencies = torch.tensor(self.frequencies, dtype=dtype)
        positions = torch.arange(self.offset, self.offset + self.num_embeddings, dtype=dtype)
        angles = positions[:, None] * frequencies  # rows D/2
        return sines_and_cosines(angles, interleaved=self.interleaved).to(torch.float32)


def sines_and_cosines(angles: Tensor, *, interleaved: bool) -> Tensor:
    """... D/2 -> ... D, side by side or all sines first."""
    sin, cos = angles.sin(), angles.cos()
    return torch.stack((sin, cos), -1).flatten(-2) if interleaved else torch.cat((sin, cos), -1)


@builds(spec.Sinusoidal)
class Sinusoidal(Position):
    """sin(p * f) and cos(p * f) of fixed frequencies f, computed or looked up in a table."""

    def __init__(self, spec: spec.Sinusoidal, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.interleaved, self.offset, self.zero = spec.layout == "interleaved", spec.offset, spec.zero
        self.frequencies = sinusoid_frequencies(spec, context.d_model // 2)
        self.table: SinusoidTable | None = None
        if spec.table:
            assert context.context_length is not None
            self.table = SinusoidTable(spec, context.context_length, self.frequencies)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        if self.table is not None:
            return x + self.table(positions)
        angles = functional.angles(positions + self.offset, self.frequencies)  # B T D/2
        vectors = sines_and_cosines(angles, interleaved=self.interleaved)
        if self.zero is not None:
            vectors = vectors * (1 - (positions == self.zero).to(vectors.dtype)).unsqueeze(-1)
        return x + vectors.to(x.dtype)
