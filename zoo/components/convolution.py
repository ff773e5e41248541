"""Convolutions: the torch modules, but initialized by the model's recipe."""

from __future__ import annotations

from torch import Tensor, nn

from zoo.precision import in_dtype


class Convolution1d(nn.Conv1d):
    """``torch.nn.Conv1d`` that leaves its weights unset, and works in their dtype: B C T -> B d_out T'."""

    def reset_parameters(self) -> None:
        """No-op: the builder initializes all weights."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(in_dtype(x, self.weight.dtype))


class Convolution2d(nn.Conv2d):
    """``torch.nn.Conv2d`` that leaves its weights unset, and works in their dtype: B C H W -> B d_out H' W'."""

    def reset_parameters(self) -> None:
        """No-op: the builder initializes all weights."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(in_dtype(x, self.weight.dtype))
