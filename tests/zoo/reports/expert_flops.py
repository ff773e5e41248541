"""What torch's counter of FLOPs is told of the products of experts, which it sees as one operation each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

Shape = Sequence[int]


def _product(x: Shape, weight: Shape, bias: Shape | None, experts: Shape, **_: Any) -> int:
    """Each chosen expert's matrix by one row: E N D, ... K."""
    return 2 * math.prod(experts) * weight[1] * weight[2]


def _weight_gradient(grad: Shape, x: Shape, experts: Shape, count: int, **_: Any) -> int:
    """The outer product of each row of the gradient with its input: ... K N, ... D."""
    return 2 * math.prod(grad) * x[-1]


def flop_counter() -> FlopCounterMode:
    """A counter of the matrix products that torch runs."""
    products = {
        torch.ops.zoo.expert_product: _product,
        torch.ops.zoo.expert_weight_gradient: _weight_gradient,
    }
    return FlopCounterMode(display=False, custom_mapping=products)
