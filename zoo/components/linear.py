"""Matrices and tables.  They are the ordinary torch modules, filled by the model's recipe, not by themselves."""

from __future__ import annotations

from torch import Tensor, nn

from zoo.precision import in_dtype


class Linear(nn.Linear):
    """``torch.nn.Linear`` that leaves its weights unset, and works in their dtype: ... d_in -> ... d_out."""

    def reset_parameters(self) -> None:
        """Nothing: the builder fills all weights."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(in_dtype(x, self.weight.dtype))


class Table(nn.Embedding):
    """``torch.nn.Embedding`` that leaves its weights unset: ids ... -> ... width."""

    def reset_parameters(self) -> None:
        """Nothing: the builder fills all weights."""
