"""Matrices and tables.  They are the ordinary torch modules, filled by the model's recipe, not by themselves."""

from __future__ import annotations

from torch import nn


class Linear(nn.Linear):
    """``torch.nn.Linear`` that leaves its weights unset: ... d_in -> ... d_out."""

    def reset_parameters(self) -> None:
        """Nothing: the builder fills all weights."""


class Table(nn.Embedding):
    """``torch.nn.Embedding`` that leaves its weights unset: ids ... -> ... width."""

    def reset_parameters(self) -> None:
        """Nothing: the builder fills all weights."""
