"""The model used to verify an export: the model itself, or a reduced model that fits in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
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
"""The copies of the model in memory during verification: in PyTorch, in ONNX Runtime, and packed for its kernels."""

SPARE = 300_000_000
"""The bytes of memory to leave free."""

QUICK = 1_000_000_000
"""The size limit of reduced models, in bytes of weights: initialized and run within seconds."""


class MemoryShortageError(UserError):
    """More memory is needed than is free."""


@dataclass(frozen=True)
class VerifiedModel:
    """The model that runs, its weights, and its description in reports."""

    spec: Model
    source: WeightSource
    is_reduced: bool
    description: str


def choose_subject(
    spec: Model, size_of: Callable[[Model], int], source: WeightSource | None
) -> VerifiedModel:
    """Choose the model with its weights if memory allows, otherwise the largest reduced model that runs quickly.

    ``size_of`` gives the bytes of one copy of a spec's model, with everything it needs to run. Raises
    :class:`MemoryShortageError` if not even a narrow reduced model fits.
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


def wiring_subject(spec: Model, alike: Callable[[Model], bool]) -> VerifiedModel:
    """The narrowest reduced model that is ``alike``, with weights that make every part of the graph matter.

    Randomly initialized weights hide much: biases are 0, the weights of norms 1, and attention is nearly uniform.
    """
    shallow = short_switch_lengths(
        fewer_experts(small_limits(small_tables(small_inputs(fewer_layers(spec)))))
    )
    for divisor in (16, 8, 4, 2, 1):
        with contextlib.suppress(ValidationError):
            small = narrowed(shallow, divisor)
            if alike(small):
                break
    return VerifiedModel(
        small, ProbeWeights(assemble(small), small), True, "a reduced model with probing weights"
    )
