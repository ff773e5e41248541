"""Several heads of one body: their names, their resolved form, and the figures of their outputs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from exporters.quality.tallies import Values
from specs.forms.resolved import resolved
from specs.kinds.retrieval import Several
from specs.language.load import load
from specs.language.writing import dump
from tests.cli.program import invoke, refused

SEVERAL = "{kind: several, heads: {terms: {kind: sparse, activation: null}, weights: {kind: token_weights}}}"


@pytest.mark.parametrize("name", ["items", "train", "forward"])
def test_a_head_may_not_be_called_as_an_attribute_of_modules(name: str) -> None:
    head = SEVERAL.replace("terms", name)
    found = invoke("params", "bert-tiny", "--set", f"head={head}")
    assert (found.exit_code, found.stderr) == (
        2,
        f"head.heads.{name}: must not be the name of an attribute of PyTorch's modules\n  value: {name!r}\n"
        "  Rename it, as in dense or sparse.\n",
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            "{kind: pooled, output: query_embedding, projection: 5}",
            "the width of document, which is 128\n  value: 5\n",
        ),
        ("{kind: token_weights}", "the kind of document, which is pooled\n  value: 'token_weights'\n"),
    ],
)
def test_heads_for_queries_and_documents_are_alike(query: str, words: str) -> None:
    head = f"{{kind: several, heads: {{query: {query}, document: {{kind: pooled}}}}}}"
    message = refused("params", "bert-tiny", "--set", f"head={head}")
    assert f"head.heads.query: must give vectors of {words}" in message


def test_a_resolved_head_keeps_a_null_that_is_not_the_default(tmp_path: Path) -> None:
    """Without it, the spec that an export records breaks a rule."""
    spec = load("bert-tiny", [f"head={SEVERAL}"])
    (tmp_path / "again.yaml").write_text(dump(resolved(spec)))
    again = load(tmp_path / "again.yaml").head
    assert isinstance(again, Several)
    assert again == spec.head


def test_an_output_of_few_values_counts_as_much_as_the_others() -> None:
    """The weights of tokens beside the vectors of tokens, which are many more numbers."""
    outputs = {"token_embeddings": torch.ones(1, 3, 50), "token_weights": torch.tensor([[0.1, 0.0, 0.0]])}
    case: Any = SimpleNamespace(batch=SimpleNamespace(inputs=torch.zeros(1, 3), real=torch.ones(1, 3)))
    tally = Values()
    tally.add(case, outputs, {**outputs, "token_weights": torch.tensor([[0.0, 0.1, 0.0]])})
    assert tally.figures() == {"cosine": 0.5, "least_cosine": 0.0}
