"""Linear layers and embedding tables: the torch modules, but initialized by the model's recipe."""

from __future__ import annotations

from torch import Tensor, nn

from zoo.core.precision import in_dtype


class Linear(nn.Linear):
    """``torch.nn.Linear`` that leaves its weights unset, and works in their dtype: ... d_in -> ... d_out."""

    def reset_parameters(self) -> None:
        """No-op: the builder initializes all weights."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(in_dtype(x, self.weight.dtype))


class EmbeddingTable(nn.Embedding):
    """``torch.nn.Embedding`` that leaves its weights unset: ids ... -> ... width."""

    def reset_parameters(self) -> None:
        """No-op: the builder initializes all weights."""
