"""No output may be NaN or infinite."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.checks.result import Check
from zoo.checks.stack_runner import StackOutput, StackRunner, draw_ids, draw_inputs
from zoo.checks.subject import CheckedModel


def finite(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that all outputs are finite, also for a row in which all tokens are masked."""
    explanation = "no output is NaN or infinite, even where a row or the encoder input is all padding"
    ids = draw_ids(2, side.length, side.vocabulary)
    mask = ids.new_ones(ids.shape)
    mask[1] = 0
    readings = [side.read(ids, mask, None)]
    if side.decodes and side.length > 1:
        cache = side.read(ids[:, :-1], mask[:, :-1], None).cache
        readings.append(side.read(ids[:, -1:], mask, cache))
    if side.read_beside is not None:
        source = draw_inputs(subject.spec, "encoder", 2)
        masked = None if source.is_floating_point() else torch.ones_like(source)
        if masked is not None:
            masked[1] = 0
        readings.append(side.read_beside(source, masked)(ids, mask, None))
    count = sum(not_finite(tensor) for reading in readings for tensor in tensors_of(reading))
    return Check(f"{side.prefix}finite", "failed" if count else "passed", explanation, count, "0 values")


def tensors_of(reading: StackOutput) -> list[Tensor]:
    """All tensors of an output."""
    return [*reading.tokens, *reading.sequences, *(tensor for pair in reading.cache for tensor in pair)]


def not_finite(tensor: Tensor) -> int:
    """The number of NaN and infinite values."""
    return int((~tensor.isfinite()).sum())
