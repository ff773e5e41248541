"""Rounding the experts of a mixture for the tokens that choose them, one expert at a time.

Shapes: rows R, rows of one expert N, width D, chosen experts K, hidden width H.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exporters.graph.quantization.interleaved import groups
from exporters.rounding.calibrated_weights import CalibratedWeights, Rounding
from exporters.rounding.gptq import FactoredProducts, check_finite, gptq, products_of
from zoo.components.mixture import Experts, Matrices
from zoo.weights.blocks import Quantized


@dataclass
class RoundedExperts:
    """The experts of one mixture, whose weights are read, rounded and released expert by expert.

    ``names`` gives the name of every weight on the meta device, by identity.
    """

    experts: Experts
    weights: CalibratedWeights
    roundings: Mapping[str, Rounding]
    names: Mapping[int, str]
    _codes: dict[str, list[Quantized]] = field(default_factory=dict)

    def run(
        self, x: Tensor, weights: Tensor, chosen: Tensor, real: Tensor | None, *, of_input: bool = False
    ) -> Tensor:
        """The mixture of the rounded experts, 0 at padding: x ... D, weights and chosen ... K, real ... -> ... D.

        of_input: weights multiply what experts read.
        """
        rows, shares, choices = (tensor.flatten(0, -2) for tensor in (x, weights, chosen))
        if real is not None and real.shape == x.shape[:-1]:
            choices = choices.masked_fill(~real.flatten()[:, None], -1)
        into = [part for part in (self.experts.up, self.experts.gate) if part is not None]
        matrices = [self._matrices(part) for part in (*into, self.experts.down)]
        biases = [self._biases(part) for part in (*into, self.experts.down)]
        total = torch.zeros_like(rows)
        for expert, (*first, last) in enumerate(zip(*matrices, strict=True)):
            row, choice = (choices == expert).nonzero(as_tuple=True)
            share = shares[row, choice, None]  # N 1
            read = rows[row] * share if of_input else rows[row]  # N D
            products = _Products(read)
            hidden = self.experts.inner(
                *(
                    F.linear(read, self._rounded(part, matrix, products), bias[expert])
                    for part, matrix, bias in zip(into, first, biases, strict=False)
                )
            )  # N H
            down = self._rounded(self.experts.down, last, _Products(hidden))
            result = F.linear(hidden, down, biases[-1][expert])  # N D
            total.index_add_(0, row, result if of_input else result * share)
        for name, codes in self._codes.items():
            self.weights.keep(name, self.roundings[name], Quantized.joined(codes))
        return total.view_as(x)

    def _name(self, part: Matrices) -> str:
        return self.names[id(part.weight)]

    def _matrices(self, part: Matrices) -> Iterator[Tensor]:
        """The matrix of one expert after the other, from chosen codes if there are any: N K each."""
        name, (_, rows, width) = self._name(part), part.weight.shape
        codes = self.weights.codes(name) if name in self.weights.calibrated else None
        pieces = (
            self.weights.pieces(name)
            if codes is None
            else (codes.blocks.restore(piece, width).flatten() for piece in codes.rows())
        )
        for matrix in groups(pieces, rows * width):
            yield matrix.view(rows, width).float()

    def _biases(self, part: Matrices) -> Any:
        """The bias of each expert, or None for each."""
        if part.bias is None:
            return [None] * len(part.weight)
        flat = torch.cat([*self.weights.pieces(self.names[id(part.bias)])])
        return flat.view(part.bias.shape).float()

    def _rounded(self, part: Matrices, matrix: Tensor, products: _Products) -> Tensor:
        """A matrix as it will be stored."""
        name = self._name(part)
        rounding = self.roundings.get(name)
        if rounding is None or name in self.weights.calibrated:
            return matrix
        check_finite(products.rows, name)
        codes = gptq(rounding.blocks, matrix, products(), rounding.dtype)
        self._codes.setdefault(name, []).append(codes)
        return rounding.blocks.restore(codes, matrix.shape[1])


class _Products:
    """The factored products of some rows, N K, computed when they are first asked for."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        self._found: FactoredProducts | None = None

    def __call__(self) -> FactoredProducts:
        if self._found is None:
            width = self.rows.shape[1]
            products = products_of(self.rows.float()) if len(self.rows) else torch.zeros(width, width)
            self._found = FactoredProducts.of(products)
        return self._found
