"""FLOPs of a call, and the common rules of operations.

An m x k by k x n matrix product counts 2 m n k FLOPs.  An elementwise operation counts one per element of its result for each
step; a reduction counts one per element that it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from zoo.ops.tensor_info import element_count


@dataclass(frozen=True)
class Flops:
    """FLOPs of a call: matrix products, and everything else."""

    matmul: int = 0
    other: int = 0


def no_flops(result: Any, *args: Any, **kwargs: Any) -> Flops:
    """For operations that move, copy, look up or convert values."""
    return Flops()


def per_element(steps: int = 1) -> Callable[..., Flops]:
    """``steps`` FLOPs per element of the result."""

    def rule(result: Any, *args: Any, **kwargs: Any) -> Flops:
        return Flops(other=steps * element_count(result))

    return rule


def per_input_element(result: Any, x: Any, *args: Any, **kwargs: Any) -> Flops:
    """One FLOP per element of the first argument: reductions."""
    return Flops(other=element_count(x))
