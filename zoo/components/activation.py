"""The activation functions by their names in a spec."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specs.kinds.activation import Activation
from zoo.core.initialization import Distribution


def relu2(x: Tensor) -> Tensor:
    """max(x, 0)^2 (So et al., 2021: Primer)."""
    rectified = F.relu(x)
    return rectified * rectified


def quick_gelu(x: Tensor) -> Tensor:
    """x * sigmoid(1.702 x) (Hendrycks and Gimpel, 2016; CLIP)."""
    return x * torch.sigmoid(1.702 * x)


def identity(x: Tensor) -> Tensor:
    """x."""
    return x


class XIELU(nn.Module):
    """xIELU (Huang and Schlag, 2024): a_p x^2 + b x for x > 0, otherwise a_n (e^x - 1 - x) + b x.

    a_p is softplus(alpha_p) and a_n is b + softplus(alpha_n), both trained; b and a bound just below 0 on the x of the
    exponential are stored (transformers' ``XIELUActivation``).
    """

    beta: Tensor
    eps: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.alpha_p, self.alpha_n = nn.Parameter(torch.empty(1)), nn.Parameter(torch.empty(1))
        self.register_buffer("beta", torch.empty(()))
        self.register_buffer("eps", torch.empty(()))

    def initial(self, leaf: str) -> Distribution | None:
        """Both factors begin as 0.8."""
        factors = {"alpha_p": 0.8, "alpha_n": 0.8 - 0.5}
        return Distribution(constant=math.log(math.expm1(factors[leaf]))) if leaf in factors else None

    def fixed(self, leaf: str) -> Tensor | None:
        """The untrained values if a checkpoint has none."""
        values = {"beta": 0.5, "eps": -1e-6}
        return torch.tensor(values[leaf], device="cpu") if leaf in values else None

    def forward(self, x: Tensor) -> Tensor:
        above, below = F.softplus(self.alpha_p), self.beta + F.softplus(self.alpha_n)
        exponential = F.elu(torch.minimum(x, self.eps))  # e^x - 1
        return torch.where(x > 0, above * x * x, below * (exponential - x)) + self.beta * x


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "relu2": relu2,
    "gelu": F.gelu,
    "gelu_tanh": functools.partial(F.gelu, approximate="tanh"),
    "quick_gelu": quick_gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "identity": identity,
}


def activation(name: Activation) -> Callable[[Tensor], Tensor]:
    """The activation function of a name: ... -> ... of the same shape; one with parameters is a module."""
    return XIELU() if name == "xielu" else _FUNCTIONS[name]
