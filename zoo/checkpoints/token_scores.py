"""The classifier of a reranker, from the rows of the matrix that scores tokens."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from torch import Tensor

from zoo.configs.reranking import ScoredTokens
from zoo.families.common.tensors import Tensors
from zoo.weights.files import TensorFiles
from zoo.weights.source import WeightError
from zoo.weights.stored import ComputedTensor, read_bytes


@dataclass(frozen=True)
class RowDifference(ComputedTensor):
    """One row of a stored matrix, less another if there is one: 1 W."""

    tokens: ScoredTokens

    @property
    def name(self) -> str:
        """The rows."""
        rows = (self.tokens.relevant, self.tokens.irrelevant)
        return " - ".join(f"{self.matrix.name}[{row}]" for row in rows if row is not None)

    @property
    def shape(self) -> tuple[int, ...]:
        """One row."""
        return (1, *self.matrix.shape[1:])

    def read(self) -> Tensor:
        """The values.  Raises as the matrix's."""
        row = self._row(self.tokens.relevant)
        if self.tokens.irrelevant is not None:
            row = row - self._row(self.tokens.irrelevant)
        return row[None]

    def _row(self, index: int) -> Tensor:
        matrix = self.matrix
        if matrix.extent is None or matrix.dtype is None or not matrix.outline().is_contiguous():
            return matrix.read()[index].float()
        size = math.prod(matrix.shape[1:]) * matrix.dtype.itemsize
        values = read_bytes(matrix.path, matrix.name, (matrix.extent[0] + index * size, size))
        return values.view(matrix.dtype).float()


def with_token_scores(files: TensorFiles, names: Tensors, tokens: ScoredTokens) -> TensorFiles:
    """The tensors of a decoder, and under the name of its family's classifier the difference of two tokens' rows.

    The rows are those of the head, or of the token embedding where no head is stored. Raises :class:`WeightError` where
    neither is, or has too few rows.
    """
    plain = {names.plain(name): stored for name, stored in files.tensors.items()}
    held = {
        rule.parameters[0]: rule.stored
        for rule in (*names.rules, *names.heads["language_modeling"], *names.heads["classification"])
    }
    tables = (held["head.vocabulary.weight"], held["embedding.token.weight"])
    matrix = next((plain[name] for name in tables if name in plain), None)
    if matrix is None:
        raise WeightError(
            f"{files.path} has neither {tables[0]} nor {tables[1]}, whose rows LogitScore reads"
        )
    last = max(tokens.relevant, tokens.irrelevant or 0)
    if last >= matrix.shape[0]:
        raise WeightError(
            f"{files.path}: {matrix.name} has {matrix.shape[0]:,} rows, and LogitScore reads row {last:,}"
        )
    classifier = {names.full(held["head.labels.weight"], "classification"): RowDifference(matrix, tokens)}
    return dataclasses.replace(files, tensors={**files.tensors, **classifier})
