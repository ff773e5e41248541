"""Output of ``zoo run`` for heads of retrieval: the heaviest terms, and scores by late interaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.running.output import RunContext, print_scores
from cli.terminal.render import Column, print_table
from cli.terminal.screen import screen_width

if TYPE_CHECKING:
    from exporters.runtime.encoding import EncoderRunner

HEAVIEST = 10
"""Number of terms to print."""


def print_terms(shown: RunContext, encoder: EncoderRunner) -> dict[str, Any]:
    """Print the heaviest terms of each text, and the products of their weights."""
    weights = encoder.terms(shown.values)  # B V
    scores = weights @ weights.T
    terms = [
        [(int(term), float(row[term])) for term in (-row).argsort(kind="stable") if row[term] > 0]
        for row in weights
    ]
    if not shown.as_json:
        rows = [
            (
                str(index),
                shown.label(index),
                f"{len(weighted):,}",
                "  ".join(f"{shown.name(term)} {weight:.2f}" for term, weight in weighted[:HEAVIEST]),
            )
            for index, weighted in enumerate(terms)
        ]
        columns = [Column("", right=True, pinned=True), shown.column, Column("terms", right=True)]
        print_table([*columns, Column("heaviest", prose=24)], rows, screen_width())
        print_scores("product", scores)
    return {
        **shown.inputs.data,
        "terms": [
            [{"id": term, "token": shown.name(term), "weight": weight} for term, weight in weighted]
            for weighted in terms
        ],
        "similarities": scores.tolist(),
    }


def print_token_vectors(shown: RunContext, encoder: EncoderRunner) -> dict[str, Any]:
    """Print the score of every text for every other as a query, by late interaction."""
    from exporters.runtime.encoding import late_interaction

    vectors = encoder.token_vectors(shown.values)
    scores = late_interaction(vectors, vectors)
    if not shown.as_json:
        columns = [Column("", right=True, pinned=True), shown.column]
        rows = [
            (str(index), shown.label(index), f"{len(row):,}", f"{row.shape[1]:,}")
            for index, row in enumerate(vectors)
        ]
        print_table(
            [*columns, Column("vectors", right=True), Column("width", right=True)], rows, screen_width()
        )
        print_scores("MaxSim", scores)  # a row for each text as the query
    return {
        **shown.inputs.data,
        "kind": "token_embeddings",
        "vectors": [row.tolist() for row in vectors],
        "similarities": scores.tolist(),
    }
