"""Outputs that are the same for every input: whatever is compared with them, nothing shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from exporters.verification.reference import ExpectedCase
from exporters.verification.result import OutputComparison

Compared = Callable[[ExpectedCase, str], Tensor]
"""Returns the index of the values of an output that are compared."""


@dataclass(frozen=True)
class OutputRows:
    """The compared values of each output in all cases together, R N; R 1 where the width depends on the case."""

    rows: Mapping[str, Tensor]

    @staticmethod
    def of(
        cases: Sequence[ExpectedCase], runs: Sequence[Mapping[str, Tensor]], compared: Compared
    ) -> OutputRows:
        """Collect them from one run of each case."""
        found = dict[str, list[Tensor]]()
        for expected_case, outputs in zip(cases, runs, strict=True):
            for name, values in outputs.items():
                kept = values[compared(expected_case, name)].double()
                found.setdefault(name, []).append(kept.flatten(0, -2) if kept.dim() > 1 else kept[:, None])
        return OutputRows({name: _joined(parts) for name, parts in found.items()})

    def constant(self, tolerance: float, least: float = 1.0) -> tuple[str, ...]:
        """The outputs of which no number changes by more than a ``tolerance``, relative to the largest number or ``least``."""
        return tuple(
            name
            for name, rows in self.rows.items()
            if len(rows) > 1
            and rows.shape[1]
            and _spread(rows) <= tolerance * max(least, float(rows.abs().max()))
        )


def lost_outputs(exact: OutputRows, files: OutputRows, precision: str) -> tuple[OutputComparison, ...]:
    """The failures of outputs that are constant in the files, and not in their exact form."""
    lost = sorted({*files.constant(0.0)} - {*exact.constant(0.0)})
    fault = f"the same for every input, because its values are too small for {precision}"
    return tuple(
        OutputComparison("all cases", "", output, math.inf, math.inf, 0.0, None, False, fault)
        for output in lost
    )


def _joined(parts: Sequence[Tensor]) -> Tensor:
    one_width = len({part.shape[1] for part in parts}) == 1
    return torch.cat([*parts] if one_width else [part.reshape(-1, 1) for part in parts])


def _spread(rows: Tensor) -> float:
    return float((rows.amax(0) - rows.amin(0)).max())
