"""The model that an export is verified on: the model itself, or a reduced model that fits in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.builder import assemble
from zoo.checks.probe import ProbeWeights
from zoo.core.reduced import (
    fewer_experts,
    fewer_layers,
    narrowed,
    reduced_models,
    short_switch_lengths,
    small_inputs,
    small_limits,
    small_tables,
)
from zoo.core.units import byte_text
from zoo.machine.memory import available_memory
from zoo.weights.random import RandomWeights
from zoo.weights.source import WeightSource

COPIES = 3
"""Copies of the model in memory during verification: in PyTorch, in ONNX Runtime, and packed for its kernels."""

SPARE = 300_000_000
"""Bytes of memory to leave free."""

QUICK = 1_000_000_000
"""The largest size, in bytes of weights, that is initialized and run within seconds: the limit for reduced models."""


class MemoryShortageError(UserError):
    """More memory is needed than is free."""


@dataclass(frozen=True)
class VerifiedModel:
    """The model that is run, its weights, and its description in reports."""

    spec: Model
    source: WeightSource
    is_reduced: bool
    description: str


def choose_model(spec: Model, size_of: Callable[[Model], int], source: WeightSource | None) -> VerifiedModel:
    """The model with its weights where memory allows; otherwise the largest reduced model that runs quickly.

    ``size_of`` gives the bytes of one copy of a spec's model, with everything it needs to run. Raises
    :class:`MemoryShortageError` where not even a narrow reduced model fits.
    """
    available = available_memory() - SPARE
    size = size_of(spec)
    if source is not None and size * COPIES <= available:
        return VerifiedModel(spec, source, False, "the model itself")
    if source is None and size <= min(QUICK, available // COPIES):
        return VerifiedModel(spec, RandomWeights(assemble(spec), spec), True, "the model with random weights")
    for small, description in reduced_models(spec):
        size = size_of(small)
        if size <= min(QUICK, available // COPIES):
            return VerifiedModel(
                small, RandomWeights(assemble(small), small), True, f"{description}, with random weights"
            )
    raise _shortage(
        f"Verification, on {description}, needs", size * COPIES, f"export with {option_name('verify', False)}"
    )


def has_room(size: int) -> bool:
    """Whether memory allows verifying a model of ``size`` bytes per copy."""
    return size * COPIES <= available_memory() - SPARE


def check_memory(what: str, needed: int, instead: str) -> None:
    """Raise :class:`MemoryShortageError` unless ``needed`` bytes of memory are free."""
    if needed > available_memory() - SPARE:
        raise _shortage(f"{what} needs", needed, instead)


def _shortage(what: str, needed: int, instead: str) -> MemoryShortageError:
    free = byte_text(max(0, available_memory() - SPARE))
    return MemoryShortageError(
        f"{what} {byte_text(needed)} of memory, and {free} are free\n  Use a larger machine, or {instead}."
    )


def narrow_models(spec: Model) -> Iterator[Model]:
    """The reduced models in which every part of a graph shows, the narrowest first."""
    shallow = short_switch_lengths(
        fewer_experts(small_limits(small_tables(small_inputs(fewer_layers(spec)))))
    )
    for divisor in (16, 8, 4, 2, 1):
        with contextlib.suppress(ValidationError):
            yield narrowed(shallow, divisor)


def probing_model(spec: Model) -> VerifiedModel:
    """A reduced model with weights that make every part of the graph show.

    Randomly initialized weights hide much: biases are 0, the weights of norms 1, and attention is nearly uniform.
    """
    source = ProbeWeights(assemble(spec), spec)
    return VerifiedModel(spec, source, True, "a reduced model with probing weights")


def narrowest_model(spec: Model) -> VerifiedModel:
    """The narrowest reduced model, with probing weights."""
    return probing_model(next(narrow_models(spec)))
