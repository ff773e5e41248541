"""What an export is verified on: the model itself, or a smaller twin where that would not fit in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from specs.errors import UserError, option_name
from specs.model import Model
from zoo.builder import assemble
from zoo.checks.probe import ProbeWeights
from zoo.memory import available_memory, readable_bytes
from zoo.twin import (
    fewer_experts,
    narrowed,
    short_borders,
    small_inputs,
    small_limits,
    small_tables,
    twin,
    twins,
)
from zoo.weights.random import RandomWeights
from zoo.weights.source import WeightSource

COPIES = 3
"""Verification holds a model this many times: for PyTorch, for ONNX Runtime, and as packed for its kernels."""

SPARE = 300_000_000
"""Bytes of memory left free."""

QUICK = 1_000_000_000
"""Bytes of weights that are drawn and run in seconds: the most that stands in for a graph without weights."""


class MemoryShortageError(UserError):
    """More memory is needed than is free."""


@dataclass(frozen=True)
class Subject:
    """The model that is run, its weights, and how it is called in reports."""

    spec: Model
    source: WeightSource
    is_twin: bool
    description: str


def choose_subject(spec: Model, size_of: Callable[[Model], int], source: WeightSource | None) -> Subject:
    """The model with its weights where memory allows; else the largest twin that is quick.

    ``size_of`` gives the bytes that one copy of the model of a spec needs, with all that it is run with.

    Raises :class:`MemoryShortageError` where not even a narrow twin fits.
    """
    available = available_memory() - SPARE
    size = size_of(spec)
    if source is not None and size * COPIES <= available:
        return Subject(spec, source, False, "the model itself")
    if source is None and size <= min(QUICK, available // COPIES):
        return Subject(spec, RandomWeights(assemble(spec), spec), True, "the model with random weights")
    for small, description in twins(spec):
        size = size_of(small)
        if size <= min(QUICK, available // COPIES):
            return Subject(
                small, RandomWeights(assemble(small), small), True, f"{description}, with random weights"
            )
    raise _shortage(
        f"verification, on {description}, needs", size * COPIES, f"export with {option_name('verify', False)}"
    )


def check_memory(what: str, needed: int, instead: str) -> None:
    """Raise :class:`MemoryShortageError` unless so many bytes of memory are free."""
    if needed > available_memory() - SPARE:
        raise _shortage(f"{what} needs", needed, instead)


def _shortage(what: str, needed: int, instead: str) -> MemoryShortageError:
    free = readable_bytes(max(0, available_memory() - SPARE))
    return MemoryShortageError(
        f"{what} {readable_bytes(needed)} of memory, and {free} are free\n  use a larger machine, or {instead}"
    )


def wiring_subject(spec: Model, alike: Callable[[Model], bool]) -> Subject:
    """A small twin with weights under which every part of the graph shows, the narrowest that is ``alike``.

    Random weights of a recipe hide much: their biases are 0, the weights of their norms 1, and their attention is
    nearly the same for all tokens.
    """
    shallow = short_borders(fewer_experts(small_limits(small_tables(small_inputs(twin(spec))))))
    for divisor in (16, 8, 4, 2, 1):
        with contextlib.suppress(ValidationError):
            small = narrowed(shallow, divisor)
            if alike(small):
                break
    return Subject(small, ProbeWeights(assemble(small), small), True, "a small twin with probing weights")
