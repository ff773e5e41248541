"""The activation functions by their names in a spec."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from specs.activation import Activation


def quick_gelu(x: Tensor) -> Tensor:
    """x * sigmoid(1.702 x) (Hendrycks and Gimpel, 2016; CLIP)."""
    return x * torch.sigmoid(1.702 * x)


def identity(x: Tensor) -> Tensor:
    """x."""
    return x


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": functools.partial(F.gelu, approximate="tanh"),
    "quick_gelu": quick_gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "identity": identity,
}


def activation(name: Activation) -> Callable[[Tensor], Tensor]:
    """The function of a name: ... -> ... of the same shape."""
    return _FUNCTIONS[name]
