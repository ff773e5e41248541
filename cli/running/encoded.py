"""Output of ``zoo run`` for encoders: vectors, classes, masked tokens, transcripts, entities, and the outputs of other heads by name."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cli.running.output import RunContext, print_scores
from cli.running.retrieval import print_ranking, print_retrieval
from cli.running.timing import tell_how
from cli.terminal.render import Column, print_json, print_table, say
from cli.terminal.screen import screen_width
from zoo.core.units import time_text

if TYPE_CHECKING:
    from exporters.runtime.encoding import EncodedVectors, EncoderRunner
    from exporters.runtime.graph import Floats

BEST = 5
"""Number of tokens or classes to print."""


def print_encoded(
    shown: RunContext,
    queries: RunContext | None,
    head_weights: Mapping[str, float],
    labels: Sequence[str] = (),
    threshold: float = 0.0,
) -> None:
    """Print vectors, classes or masked tokens, depending on the head, or else its outputs by name; with queries, a ranking for
    each, and with labels, the entities whose scores are above the threshold."""
    from exporters.runtime.encoding import EncoderRunner

    encoder = EncoderRunner(shown.exported)
    head = shown.exported.spec.head
    begun = time.perf_counter()
    if queries is not None:
        data = print_ranking(shown, queries, encoder, head_weights)
    elif labels:
        data = _print_entities(shown, encoder, labels, threshold)
    elif head.printed_as == "rankings":
        data = print_retrieval(shown, encoder, head_weights)
    else:
        data = _PRINTERS[head.printed_as](shown, encoder)
    took = time.perf_counter() - begun
    if shown.as_json:
        facts = {"name": shown.exported.spec.name, "provider": encoder.provider}
        print_json({**facts, "load_seconds": encoder.load_seconds, "seconds": took, **data})
    else:
        count = len(shown.values)
        what = f"{count} {shown.inputs.what}{'s' * (count > 1)} in {time_text(took)}"
        tell_how(encoder.provider, encoder.load_seconds, what, quiet=shown.quiet)


def _print_vectors(shown: RunContext, encoder: EncoderRunner) -> dict[str, Any]:
    vectors = encoder.vectors(shown.values)
    if not shown.as_json:
        _vector_tables(shown, vectors)
    return {
        **shown.inputs.data,
        "kind": vectors.kind,
        "vectors": vectors.values.tolist(),
        "similarities": vectors.similarities.tolist(),
    }


def _print_outputs(shown: RunContext, encoder: EncoderRunner) -> dict[str, Any]:
    outputs = encoder.named(shown.values)
    if not shown.as_json:
        rows = [
            (
                shown.label(row),
                name,
                " x ".join(map(str, values.shape)),
                "  ".join(f"{value:+.4f}" for value in values.flat[:3]) + "  ..." * (values.size > 3),
            )
            for row, by_name in enumerate(outputs)
            for name, values in by_name.items()
        ]
        columns = [shown.column, Column("output", pinned=True), Column("shape"), Column("first values")]
        print_table(columns, rows, screen_width())
    data = [{name: values.tolist() for name, values in by_name.items()} for by_name in outputs]
    return {**shown.inputs.data, "outputs": data}


def _vector_tables(shown: RunContext, vectors: EncodedVectors) -> None:
    width = vectors.values.shape[1]
    rows = []
    for row, vector in enumerate(vectors.values):
        start = "  ".join(f"{value:+.4f}" for value in vector[:3])
        length = f"{(vector @ vector) ** 0.5:.4f}"
        rows.append((str(row), shown.label(row), f"{start}  ... {width} numbers", length))
    columns = [
        Column("", right=True, pinned=True),
        shown.column,
        Column(vectors.kind, prose=16),
        Column("length", right=True),
    ]
    print_table(columns, rows, screen_width())
    print_scores("cosine", vectors.similarities)


def _print_classes(shown: RunContext, encoder: EncoderRunner) -> dict[str, Any]:
    probabilities = encoder.classes(shown.values)
    names = shown.exported.labels
    if not shown.as_json:
        print_table(
            [shown.column, Column("label", right=True), Column("probability", right=True)],
            [
                (shown.label(row), str(names.get(str(label), label)), f"{shares[label]:.2%}")
                for row, shares in enumerate(probabilities)
                for label in _best(shares)
            ],
            screen_width(),
        )
    return {**shown.inputs.data, "probabilities": probabilities.tolist()}


def _print_masked(shown: RunContext, encoder: EncoderRunner) -> dict[str, Any]:
    from specs.base.errors import UserError

    mask = None if shown.text is None else shown.text.mask_id
    if mask is None:
        raise UserError(
            "Filling masks needs a tokenizer with a [MASK] or <mask> token.\n"
            "  Pass --tokenizer PATH, or run the graph with onnxruntime."
        )
    prompts = [*shown.values]
    if not any(mask in prompt for prompt in prompts):
        raise UserError(f"No text has a {shown.name(mask)} token to fill.\n  Replace a word with it.")
    probabilities = encoder.masked(prompts, mask)
    best = [
        [[(token, float(shares[token])) for token in _best(shares)] for shares in masks]
        for masks in probabilities
    ]
    if not shown.as_json:
        print_table(
            [shown.column, "mask", Column("most likely tokens", prose=24)],
            [
                (
                    shown.label(row),
                    str(index),
                    "  ".join(f"{shown.name(token)} {share:.1%}" for token, share in tokens),
                )
                for row, masks in enumerate(best)
                for index, tokens in enumerate(masks)
            ],
            screen_width(),
        )
    return {
        "prompt_ids": prompts,
        "masks": [
            [
                [{"id": token, "token": shown.name(token), "probability": share} for token, share in tokens]
                for tokens in masks
            ]
            for masks in best
        ],
    }


def _print_spoken(shown: RunContext, encoder: EncoderRunner) -> dict[str, Any]:
    from exporters.runtime.transcripts import CharacterVocabulary, spoken_text

    spoken = encoder.spoken(shown.values)
    characters = CharacterVocabulary.beside(shown.exported.directory)
    texts = [spoken_text(labels, encoder.blank, characters, shown.text) for labels in spoken]
    if not shown.as_json:
        for name, labels, text in zip(shown.inputs.names, spoken, texts, strict=True):
            words = ",".join(map(str, labels)) if text is None else text
            say(words if len(spoken) == 1 else f"{name} -> {words}")
    transcripts = [
        {"ids": labels, **({} if text is None else {"text": text})}
        for labels, text in zip(spoken, texts, strict=True)
    ]
    return {**shown.inputs.data, "transcripts": transcripts}


def _print_entities(
    shown: RunContext, encoder: EncoderRunner, labels: Sequence[str], threshold: float
) -> dict[str, Any]:
    """Print the entities of each text with their labels and scores."""
    from exporters.runtime.spans import SpanRunner
    from zoo.checkpoints.carried import stated_in
    from zoo.weights.names import GLINER

    assert shown.text is not None
    texts = shown.inputs.names
    config = stated_in(shown.exported.directory / GLINER)
    entities = SpanRunner(encoder, shown.text, config).entities(texts, labels, threshold)
    if not shown.as_json:
        rows = [
            (shown.label(row), entity.text, entity.label, f"{entity.score:.2%}")
            for row, of_text in enumerate(entities)
            for entity in of_text
        ]
        columns = [shown.column, Column("entity", prose=16), Column("label"), Column("score", right=True)]
        if rows:
            print_table(columns, rows, screen_width())
        else:
            say(f"No entity has a score above {threshold:g}.")
    return {**shown.inputs.data, "entities": [[asdict(entity) for entity in of_text] for of_text in entities]}


def _best(shares: Floats) -> list[int]:
    return [int(token) for token in (-shares).argsort(kind="stable")[:BEST]]


_PRINTERS = {
    "outputs": _print_outputs,
    "vectors": _print_vectors,
    "classes": _print_classes,
    "masks": _print_masked,
    "transcripts": _print_spoken,
}
"""The printer of each form of outputs."""
