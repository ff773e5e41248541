"""Output of ``zoo run`` for heads of retrieval: the heaviest terms, scores by each head and by all, and rankings for queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from cli.running.output import RunContext, print_scores
from cli.terminal.render import Column, print_table, say
from cli.terminal.screen import screen_width

if TYPE_CHECKING:
    from exporters.runtime.encoding import EncoderRunner
    from exporters.runtime.graph import Floats
    from exporters.runtime.retrieval import EncodedTexts, RetrievalRunner

    Encoded = Mapping[str, EncodedTexts]

HEAVIEST = 10
"""Number of terms to print of a text, and in a ranking."""
SHARED = 4
"""Number of terms to print that a text and a query have in common."""

_TITLES = {"dot": "product", "maxsim": "MaxSim"}
"""The titles of scores, if not the name of the similarity."""


def print_retrieval(
    shown: RunContext, encoder: EncoderRunner, weights: Mapping[str, float]
) -> dict[str, Any]:
    """Print the results of each head for each text, and the score of every text for every other as a query."""
    from exporters.runtime.retrieval import ALL, combined

    runner = retrieval_runner(shown, encoder)
    encoded = runner.encode(shown.values)
    scores = {name: texts.scores(texts) for name, texts in encoded.items()}
    together = combined(scores, weights)
    if not shown.as_json:
        _print_texts(shown, encoded)
        for name, table in scores.items():
            title = _TITLES.get(encoded[name].similarity, encoded[name].similarity)
            print_scores(f"{name} ({title})" if runner.several else title, table)
        if runner.several:
            print_scores(ALL, together)
    heads = {
        name: {**_data(shown, texts), "similarities": scores[name].tolist()}
        for name, texts in encoded.items()
    }
    data = {"heads": heads, "similarities": together.tolist()} if runner.several else heads[next(iter(heads))]
    return {**shown.inputs.data, **data}


def print_ranking(
    shown: RunContext, queries: RunContext, encoder: EncoderRunner, weights: Mapping[str, float]
) -> dict[str, Any]:
    """Print the texts for each query, best first, by their scores for each head and for all."""
    from exporters.runtime.retrieval import combined

    runner = retrieval_runner(shown, encoder)
    asked, texts = runner.encode_queries(cast(Any, queries.values)), runner.encode(shown.values)
    scores = {name: encoded.scores(texts[name]) for name, encoded in asked.items()}
    together = combined(scores, weights)
    answers: list[dict[str, Any]] = []
    for query, question in enumerate(queries.inputs.names):
        by_head = {name: table[query] for name, table in scores.items()} if runner.several else {}
        answer = ranked(together[query], by_head, _common_terms(shown, query, asked, texts))
        answers.append({"query": question, "texts": answer})
        if not shown.as_json:
            say_ranked(shown, question, answer, list(scores))
    return {**shown.inputs.data, "queries": answers}


def ranked(
    scores: Floats, by_head: Mapping[str, Floats], terms: Sequence[list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """The inputs by their scores for a query, N, best first, with the scores ``by_head`` and the common ``terms`` if any."""
    return [
        {
            "index": int(index),
            "score": float(scores[index]),
            **({"scores": {name: float(part[index]) for name, part in by_head.items()}} if by_head else {}),
            **({"terms": terms[index]} if terms else {}),
        }
        for index in (-scores).argsort(kind="stable")
    ]


def say_ranked(shown: RunContext, query: str, answer: list[dict[str, Any]], heads: list[str]) -> None:
    """Print a query and the inputs for it, best first."""
    say(query, "bold")
    _print_ranked(shown, answer, heads)


def retrieval_runner(shown: RunContext, encoder: EncoderRunner) -> RetrievalRunner:
    """The runner of an export's heads; settings that it does not apply are named on stderr, unless quiet."""
    from exporters.runtime.retrieval import RetrievalRunner, static_weights
    from specs.kinds.retrieval import MultiVector, TokenWeights

    usage, text = shown.exported.sentences, shown.text
    directory = shown.exported.static_queries
    static = None if directory is None else static_weights(directory, encoder.spec.vocab_size or 0)
    runner = RetrievalRunner(encoder, usage.similarity, set() if text is None else text.special_ids, static)
    kinds = [type(head) for head in runner.heads.values()]
    if usage.unapplied and MultiVector in kinds and not shown.quiet:
        say(f"Not applied, and every token counts: {', '.join(usage.unapplied)}.", "yellow", err=True)
    if text is None and TokenWeights in kinds and not shown.quiet:
        say("Without a tokenizer, start and end tokens count as terms.", "yellow", err=True)
    return runner


def _common_terms(
    shown: RunContext, query: int, asked: Encoded, texts: Encoded
) -> list[list[dict[str, Any]]]:
    """The products of the weights of the terms that each text has in common with a query, largest first; empty without such a
    head."""
    from exporters.runtime.retrieval import heaviest

    name = next((name for name, encoded in asked.items() if encoded.weighs_terms), None)
    if name is None:
        return []
    weights = asked[name].values[query]
    return [_terms(shown, heaviest(weights * values)) for values in texts[name].values]


def _print_ranked(shown: RunContext, texts: list[dict[str, Any]], heads: list[str]) -> None:
    """Print the texts for a query, best first."""
    several, weighs = "scores" in texts[0], "terms" in texts[0]
    rows = [
        (
            str(rank),
            shown.label(text["index"]),
            f"{text['score']:.4f}",
            *([f"{text['scores'][name]:.4f}" for name in heads] if several else []),
            *(["  ".join(f"{term['word']} {term['weight']:.2f}" for term in text["terms"][:SHARED])] if weighs else []),
        )
        for rank, text in enumerate(texts, 1)
    ]  # fmt: skip
    columns = [Column("", right=True, pinned=True), shown.column, Column("score", right=True, pinned=True)]
    columns += [Column(name, right=True) for name in heads] if several else []
    columns += [Column("terms in common", prose=16)] if weighs else []
    print_table(columns, rows, screen_width())


def _print_texts(shown: RunContext, encoded: Encoded) -> None:
    """Print a row for each text: the heaviest terms, or the number of vectors and their width."""
    columns = [Column("", right=True, pinned=True), shown.column]
    rows: list[tuple[str, ...]] = [(str(index), shown.label(index)) for index in range(len(shown.values))]
    for texts in encoded.values():
        if texts.weighs_terms:
            columns += [Column("terms", right=True), Column("heaviest", prose=24)]
            for index in range(len(rows)):
                terms = texts.terms(index)
                words = "  ".join(f"{_word(shown, term)} {weight:.2f}" for term, weight in terms[:HEAVIEST])
                rows[index] += (f"{len(terms):,}", words)
        elif texts.values[0].ndim == 2:
            columns += [Column("vectors", right=True), Column("width", right=True)]
            for index, vectors in enumerate(texts.values):
                rows[index] += (f"{len(vectors):,}", f"{vectors.shape[1]:,}")
    print_table(columns, rows, screen_width())


def _word(shown: RunContext, token: int) -> str:
    """The text of a token, or its id."""
    return str(token) if shown.text is None else shown.text.label(token)


def _terms(shown: RunContext, weighted: list[tuple[int, float]]) -> list[dict[str, Any]]:
    return [
        {"id": term, "token": shown.name(term), "word": _word(shown, term), "weight": weight}
        for term, weight in weighted
    ]


def _data(shown: RunContext, texts: EncodedTexts) -> dict[str, Any]:
    """Return the results of a head for each text as JSON data."""
    if texts.weighs_terms:
        return {"terms": [_terms(shown, texts.terms(index)) for index in range(len(texts.values))]}
    return {"kind": texts.head.vector_output, "vectors": [values.tolist() for values in texts.values]}
