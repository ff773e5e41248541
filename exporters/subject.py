"""What an export is verified on: the model itself, or a smaller twin where that would not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from exporters.destination import DestinationError, readable_bytes
from exporters.memory import available_bytes
from specs.model import Model
from zoo.builder import assemble
from zoo.twin import narrowed, small_tables, twin
from zoo.weights.random import RandomWeights
from zoo.weights.source import WeightSource

COPIES = 3
"""Verification holds a model this many times: for PyTorch, for ONNX Runtime, and as packed for its kernels."""

SPARE = 300_000_000
"""Bytes of memory left free."""

QUICK = 1_000_000_000
"""Bytes of weights that are drawn and run in seconds: the most that stands in for a graph without weights."""


@dataclass(frozen=True)
class Subject:
    """The model that is run, its weights, and how it is called in reports."""

    spec: Model
    source: WeightSource
    is_twin: bool
    description: str


def choose_subject(spec: Model, model: nn.Module, size: int, source: WeightSource | None) -> Subject:
    """The model with its weights, of ``size`` bytes, where memory allows; else the largest twin that is quick.

    Raises :class:`DestinationError` where not even a narrow twin fits.
    """
    available = available_bytes() - SPARE
    if source is not None and size * COPIES <= available:
        return Subject(spec, source, False, "the model itself")
    if source is None and size <= min(QUICK, available // COPIES):
        return Subject(spec, RandomWeights(model, spec), True, "the model with random weights")
    for small, description in _twins(spec):
        smaller = assemble(small)
        if sum(parameter.nbytes for parameter in smaller.parameters()) <= min(QUICK, available // COPIES):
            return Subject(small, RandomWeights(smaller, small), True, f"{description}, with random weights")
    raise DestinationError(
        f"verification needs more than the {readable_bytes(max(available, 0))} of memory that are free\n"
        f"  verify on a larger machine, or export with --no-verify"
    )


def _twins(spec: Model) -> Iterator[tuple[Model, str]]:
    for layers in (4, 2):
        small = twin(spec, layers)
        pairs = zip(small.stacks(), spec.stacks(), strict=True)
        depths = " + ".join(f"{kept.depth} of {full.depth}" for (_, kept), (_, full) in pairs)
        yield small, f"a twin with {depths} layers"
    small = small_tables(small)
    tables = f"{depths} layers and {small.vocab_size:,} of {spec.vocab_size:,} tokens"
    yield small, f"a twin with {tables}"
    for divisor in (2, 4, 8, 16, 32, 64):
        yield narrowed(small, divisor), f"a twin with {tables}, 1/{divisor} as wide"
