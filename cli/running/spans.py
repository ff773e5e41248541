"""Output of ``zoo run --labels``: the entities of each text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cli.terminal.render import Column, print_table, say
from cli.terminal.screen import screen_width

if TYPE_CHECKING:
    from cli.running.output import RunContext
    from exporters.runtime.encoding import EncoderRunner


def print_entities(
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
