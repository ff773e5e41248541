"""What each deployment target runs: one table decides which operation a graph may use.

An emitter asks its target whether it takes an operation; where it does not, the emitter writes the standard
operations that come to the same.  A new target is a row in ``TARGETS``, a new operation a row in ``OPERATIONS``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

FLOATS = frozenset({torch.float32, torch.float16, torch.bfloat16})


@dataclass(frozen=True)
class Operation:
    """An operation that not every target has: the opset it came with (``domain`` "" is standard ONNX)."""

    name: str
    since: int
    domain: str = ""
    dtypes: frozenset[torch.dtype] = FLOATS


OPERATIONS = {operation.name: operation for operation in (Operation("Gelu", since=20),)}


@dataclass(frozen=True)
class Target:
    """A place where graphs run: its providers in order of preference, and the operations it takes."""

    name: str
    summary: str
    providers: tuple[str, ...]
    operations: frozenset[str]

    def takes(self, operation: str, dtype: torch.dtype) -> bool:
        """Whether a graph for this target may use an operation of ``OPERATIONS`` in a dtype."""
        return operation in self.operations and dtype in OPERATIONS[operation].dtypes


TARGETS = {
    target.name: target
    for target in (
        Target(
            "portable",
            "standard ONNX operations only; runs on every provider of ONNX Runtime",
            providers=("CPUExecutionProvider",),
            operations=frozenset({"Gelu"}),
        ),
    )
}

BASE_OPSET = 18
"""The lowest opset written: the reductions take their axes as inputs from here on."""

MINIMUM_RUNTIME = {18: "1.14", 20: "1.17"}
"""The first ONNX Runtime that runs each opset in use."""
