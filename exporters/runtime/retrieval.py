"""Scores of texts for queries by an encoder's heads for retrieval, each alone and all together.

Shapes: queries Q, texts N, tokens T, width W, vocabulary V.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from exporters.runtime.encoding import EncoderRunner, late_interaction
from exporters.runtime.graph import Floats, Ids
from exporters.runtime.model_inputs import InputBatch, ModelInputs, batches
from exporters.runtime.sentences import Similarity
from specs.base.errors import UserError, option_name
from specs.kinds.head import HeadKind
from zoo.weights.files import TensorFiles
from zoo.weights.modules import DOCUMENT, QUERY
from zoo.weights.source import WeightError

ALL = "all"
"""The name of the scores of all heads together."""


@dataclass(frozen=True)
class EncodedTexts:
    """The results of one head for each text: vectors of tokens, T W, weights of terms, V, or a vector, W."""

    head: HeadKind
    values: list[Floats]
    similarity: Similarity
    """The comparison of two vectors or of the weights of terms."""
    per_query_token: bool = False
    """Whether late interaction is the mean over a query's tokens instead of the sum."""

    @property
    def weighs_terms(self) -> bool:
        """Whether the values are weights of terms."""
        return self.head.weighs_terms

    def scores(self, texts: EncodedTexts) -> Floats:
        """The score of each text for each of these as a query, Q N."""
        if self.similarity == "maxsim":
            scores = late_interaction(self.values, texts.values)
            counts = np.array([[max(1, len(query))] for query in self.values], np.float32)
            return np.divide(scores, counts, dtype=np.float32) if self.per_query_token else scores
        return _compared(np.stack(self.values), np.stack(texts.values), self.similarity)

    def terms(self, index: int) -> list[tuple[int, float]]:
        """The terms of a text with their weights, heaviest first."""
        return heaviest(self.values[index])


def static_weights(directory: Path, terms: int) -> Floats:
    """The static weights of the terms of queries in a module's directory, V.

    Raises :class:`specs.base.errors.UserError` for another number of weights than ``terms``.
    """
    stored = TensorFiles.open(directory).tensors.get("weight")
    if stored is None or tuple(stored.shape) != (terms,):
        raise WeightError(
            f"{directory} must have one tensor weight, with a number for each of the {terms} terms\n"
            "  Save the model again with sentence-transformers."
        )
    return np.asarray(stored.read().float().numpy())


def heaviest(weights: Floats) -> list[tuple[int, float]]:
    """The terms with a weight above 0, heaviest first."""
    return [
        (int(term), float(weights[term])) for term in (-weights).argsort(kind="stable") if weights[term] > 0
    ]


class RetrievalRunner:
    """An encoder whose heads compare texts, loaded.

    Heads of kind ``several`` follow BGE-M3 as FlagEmbedding computes it: the first token has no vector, late interaction is the mean
    over a query's tokens, and the ``special`` tokens are no terms. Heads ``query`` and ``document`` are those of a Router, and
    ``static`` are weights of the terms of a query, V.
    """

    def __init__(
        self,
        encoder: EncoderRunner,
        similarity: Similarity | None,
        special: Collection[int],
        static: Floats | None = None,
    ) -> None:
        head = encoder.spec.head
        self._encoder, self._similarity, self._special = encoder, similarity, sorted(special)
        self._static = static
        self.heads = head.parts
        self._query = self.heads[QUERY] if set(self.heads) == {QUERY, DOCUMENT} else None
        if self._query is not None:
            self.heads = {DOCUMENT: self.heads[DOCUMENT]}
        self.several = len(self.heads) > 1

    def encode_queries(self, inputs: Sequence[Sequence[int]]) -> dict[str, EncodedTexts]:
        """Return the results of each head for queries, by the name of the head for the texts to compare."""
        if self._static is None:
            heads = self.heads if self._query is None else {DOCUMENT: self._query}
            return self._encoded(inputs, heads)
        ((name, head),) = self.heads.items()
        present = np.zeros((len(inputs), len(self._static)), np.float32)
        for row, ids in zip(present, inputs, strict=True):
            row[np.asarray(ids, np.int64)] = 1
        return {name: EncodedTexts(head, list(present * self._static), self._similarity_of(head))}

    def encode(self, inputs: ModelInputs) -> dict[str, EncodedTexts]:
        """Return the results of each head for texts."""
        return self._encoded(inputs, self.heads)

    def _encoded(self, inputs: ModelInputs, heads: Mapping[str, HeadKind]) -> dict[str, EncodedTexts]:
        values: dict[str, list[Floats]] = {name: [] for name in heads}
        for batch in batches(inputs):
            outputs, mask = self._encoder.outputs(batch)
            for name, head in heads.items():
                values[name] += self._values(head, batch, outputs, mask)
        return {
            name: EncodedTexts(head, values[name], self._similarity_of(head), self.several)
            for name, head in heads.items()
        }

    def _similarity_of(self, head: HeadKind) -> Similarity:
        if head.compared_by == "late interaction":
            return "maxsim"
        if head.weighs_terms and (self.several or head.compared_by == "terms"):
            return "dot"
        similarity = None if self._similarity == "maxsim" else self._similarity
        return similarity or ("dot" if head.weighs_terms else "cosine")

    def _values(
        self, head: HeadKind, batch: InputBatch, outputs: Mapping[str, Floats], mask: Ids | None
    ) -> list[Floats]:
        if head.compared_by == "vectors" and not head.weighs_terms:
            return list(self._encoder.sequence_vectors(head, outputs, mask).values)
        rows = outputs[head.vector_output]
        if head.compared_by == "vectors":
            return list(rows)
        real = [row if mask is None else row[mask[index] == 1] for index, row in enumerate(rows)]
        if head.weighs_terms:
            return [self._terms(ids, weights) for ids, weights in zip(batch, real, strict=True)]
        return [row[1:] for row in real] if self.several else real

    def _terms(self, ids: object, weights: Floats) -> Floats:
        """The largest weight of each term's tokens, V."""
        terms = np.zeros(self._encoder.spec.vocab_size or 0, np.float32)
        np.maximum.at(terms, np.asarray(ids, np.int64), weights)
        terms[self._special] = 0
        return terms


def combined(scores: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """The weighted mean of the scores of all heads; a head without a weight counts as 1.

    Raises :class:`specs.base.errors.UserError` for an unknown head, and for weights that sum to 0 or less.
    """
    for name in weights:
        if name not in scores:
            raise UserError(
                f"{option_name('head_weight')}: {name} is not a head of the model\n  Use {', '.join(scores)}."
            )
    shares = {name: weights.get(name, 1.0) for name in scores}
    total = sum(shares.values())
    if not (min(shares.values()) >= 0 and 0 < total < np.inf):
        raise UserError(
            f"{option_name('head_weight')} must be 0 or more, and above 0 for one head\n"
            f"  value: {', '.join(f'{name}={share:g}' for name, share in shares.items())}\n  Raise a weight."
        )
    return np.asarray(sum(share * scores[name] for name, share in shares.items()) / total, np.float32)


def _compared(queries: Floats, texts: Floats, similarity: Similarity) -> Floats:
    """The similarity of each query and text, Q N, as sentence-transformers defines it: distances are negative."""
    match similarity:
        case "cosine":
            return _unit(queries) @ _unit(texts).T
        case "dot":
            return queries @ texts.T
        case "euclidean":
            return -np.linalg.norm(queries[:, None] - texts[None], axis=-1)
        case _:
            return -np.abs(queries[:, None] - texts[None]).sum(-1)


def _unit(vectors: Floats) -> Floats:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
