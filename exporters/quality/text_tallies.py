"""Accumulation of quality figures of heads that rank texts: cosines, and agreement of each text's nearest neighbours.

Shapes: texts N, tokens T, width W.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from exporters.quality import measures
from exporters.quality.outputs import Outputs, real_positions
from exporters.verification.cases import Case
from specs.kinds.head import HeadKind

NEIGHBOURS = "same_neighbours"


class TextTally(Protocol):
    """Accumulates the outputs of the reference and of the files for texts."""

    def add(self, case: Case, wanted: Outputs | None, got: Outputs) -> None:
        """Add one case."""
        ...

    def scores(self) -> tuple[Tensor, Tensor]:
        """The scores of every text for every other as a query, N N, by the reference and by the files."""
        ...

    def figures(self) -> dict[str, float]:
        """The figures of all cases so far."""
        ...


class _OneHead:
    def cosines(self) -> Tensor:
        """The cosine of each pair of vectors of the reference and of the files."""
        raise NotImplementedError

    def scores(self) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def figures(self) -> dict[str, float]:
        cosines = self.cosines()
        return {
            "cosine": float(cosines.mean()),
            "least_cosine": float(cosines.min()),
            NEIGHBOURS: measures.score_agreement(*self.scores()),
        }


class Vectors(_OneHead):
    """One vector per row: ``output``, or the mean of B T D; compared by cosine, or by ``products``, as weights of terms are."""

    def __init__(self, output: str, *, products: bool = False) -> None:
        self._output = output
        self._table = measures.products if products else measures.cosine_table
        self._wanted: list[Tensor] = []
        self._got: list[Tensor] = []

    def add(self, case: Case, wanted: Outputs | None, got: Outputs) -> None:
        assert wanted is not None
        self._wanted.append(self.pooled(case, wanted))
        self._got.append(self.pooled(case, got))

    def pooled(self, case: Case, outputs: Outputs) -> Tensor:
        values = outputs[self._output].float()
        if values.dim() == 2:
            return values
        if case.batch.real is None:
            return values.mean(1)
        weights = case.batch.real[..., None].to(values.dtype)
        return (values * weights).sum(1) / weights.sum(1)

    def cosines(self) -> Tensor:
        return measures.cosine(torch.cat(self._wanted), torch.cat(self._got))

    def scores(self) -> tuple[Tensor, Tensor]:
        return self._table(torch.cat(self._wanted)), self._table(torch.cat(self._got))


class TokenVectors(_OneHead):
    """The vectors of tokens, ``output``: B T W; compared by late interaction.

    ``several``: one of several heads, as in BGE-M3: the first token has no vector, and scores are means over a query's tokens.
    """

    def __init__(self, output: str, *, several: bool = False) -> None:
        self._output, self._several = output, several
        self._wanted: list[Tensor] = []
        self._got: list[Tensor] = []

    def add(self, case: Case, wanted: Outputs | None, got: Outputs) -> None:
        assert wanted is not None
        for vectors, side in ((self._wanted, wanted), (self._got, got)):
            values = side[self._output].double()
            real = real_positions(case, values)
            vectors.extend(row[mask][self._several :] for row, mask in zip(values, real, strict=True))

    def cosines(self) -> Tensor:
        return measures.cosine(torch.cat(self._wanted), torch.cat(self._got))

    def scores(self) -> tuple[Tensor, Tensor]:
        wanted, got = (measures.late_interaction(vectors, vectors) for vectors in (self._wanted, self._got))
        counts = torch.tensor([[max(1, len(row)) if self._several else 1] for row in self._wanted])
        return wanted / counts, got / counts


class TokenWeights(_OneHead):
    """The weights of tokens, ``output``: B T, of which each term of a text has the largest; compared by their products.

    Every real token is a term, as a spec does not say which are special.
    """

    def __init__(self, output: str) -> None:
        self._output = output
        self._wanted: list[Tensor] = []
        self._got: list[Tensor] = []
        self._ids: list[Tensor] = []

    def add(self, case: Case, wanted: Outputs | None, got: Outputs) -> None:
        assert wanted is not None
        real = real_positions(case, got[self._output][..., None])
        self._ids.extend(ids[mask] for ids, mask in zip(case.batch.inputs, real, strict=True))
        for weights, side in ((self._wanted, wanted), (self._got, got)):
            values = side[self._output].double()
            weights.extend(row[mask] for row, mask in zip(values, real, strict=True))

    def cosines(self) -> Tensor:
        return measures.cosine(self._terms(self._wanted), self._terms(self._got))

    def scores(self) -> tuple[Tensor, Tensor]:
        wanted, got = self._terms(self._wanted), self._terms(self._got)
        return measures.products(wanted), measures.products(got)

    def _terms(self, weights: list[Tensor]) -> Tensor:
        """The largest weight of each term of any text, N x terms."""
        _, numbers = torch.unique(torch.cat(self._ids), return_inverse=True)
        terms = torch.zeros(len(weights), int(numbers.max()) + 1, dtype=torch.float64)
        rows = zip(terms, numbers.split([len(row) for row in weights]), weights, strict=True)
        return torch.stack([row.scatter_reduce(0, ids, values, "amax") for row, ids, values in rows])


class Heads:
    """The tallies of several heads by name: the mean of the heads' mean cosines and the least of all, and the agreement of
    neighbours by the mean of all scores and by each head's."""

    def __init__(self, heads: dict[str, TextTally]) -> None:
        self._heads = heads

    def add(self, case: Case, wanted: Outputs | None, got: Outputs) -> None:
        for tally in self._heads.values():
            tally.add(case, wanted, got)

    def scores(self) -> tuple[Tensor, Tensor]:
        wanted, got = zip(*(tally.scores() for tally in self._heads.values()), strict=True)
        return torch.stack(wanted).mean(0), torch.stack(got).mean(0)

    def figures(self) -> dict[str, float]:
        by_head = {name: tally.figures() for name, tally in self._heads.items()}
        return {
            "cosine": sum(figures["cosine"] for figures in by_head.values()) / len(by_head),
            "least_cosine": min(figures["least_cosine"] for figures in by_head.values()),
            NEIGHBOURS: measures.score_agreement(*self.scores()),
            **{f"{NEIGHBOURS}.{name}": figures[NEIGHBOURS] for name, figures in by_head.items()},
        }


def text_tally(head: HeadKind, *, several: bool = False) -> TextTally:
    """The tally of a head that ranks texts, which may be one of several."""
    match head.compared_by:
        case "heads":
            return Heads({name: text_tally(part, several=True) for name, part in head.parts.items()})
        case "late interaction":
            return TokenVectors(head.vector_output, several=several)
        case "terms":
            return TokenWeights(head.vector_output)
        case _:
            return Vectors(head.vector_output, products=head.weighs_terms)
