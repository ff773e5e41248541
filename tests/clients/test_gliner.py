"""GLiNER's library finds in exports, and in checkpoints written back, the entities that it finds in its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.cli.program import as_json
from tests.clients.client import GLINER
from tests.parity.gliner import ENCODERS
from tests.parity.minilm import minilm_directory
from tests.parity.reference import load
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec

pytestmark = pytest.mark.clients

TEXTS = [
    "Ada Lovelace was born in London, and unbelievably worked in Paris.",
    "Hi.",
    "The quick brown foxes of well-known Tokyo jump over unquestionable fences in New York City.",
]
LABELS = ["person", "city", "an unusual organization"]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "deberta": ("deberta-v2", {"hidden_size": 12, "num_rnn_layers": 1}),
    "deberta, no projection or lstm": (
        "deberta-v2",
        {"hidden_size": 16, "num_rnn_layers": 0, "max_width": 3},
    ),
    "bert, two layers": ("bert", {"hidden_size": 8, "num_rnn_layers": 2, "max_width": 5}),
    "modernbert": ("modernbert", {"hidden_size": 24, "num_rnn_layers": 1}),
    "last tokens": ("bert", {"hidden_size": 8, "num_rnn_layers": 1, "subtoken_pooling": "last"}),
}


def alike(entities: list[Any], expected: list[Any]) -> float:
    """The largest difference of the scores of the same entities."""
    places = [[(each["start"], each["end"], each["label"]) for each in of_text] for of_text in expected]
    assert [
        [(each["start"], each["end"], each["label"]) for each in of_text] for of_text in entities
    ] == places
    pairs = zip(entities, expected, strict=True)
    return max(
        abs(one["score"] - two["score"])
        for ours, theirs in pairs
        for one, two in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize("case", CASES)
def test_the_library_agrees_with_what_is_made_of_its_checkpoints(case: str, tmp_path: Path) -> None:
    family, fields = CASES[case]
    origin, made, back = (tmp_path / name for name in ("origin", "made", "back"))
    asked = {"texts": TEXTS, "labels": LABELS, "threshold": 0.02}
    encoder = {"model_type": family, **ENCODERS[family]}
    answer = GLINER(
        origin,
        make={"encoder_config": encoder, "max_len": 64, **fields},
        tokenizer=str(minilm_directory()),
        safetensors=family == "bert",
        **asked,
    )
    spec = import_spec(origin)
    inputs = {name: torch.tensor(values) for name, values in answer["inputs"].items()}
    with torch.no_grad():
        ours = load(spec, origin)(inputs.pop("input_ids"), **inputs).logits
    logits = torch.tensor(answer["logits"])
    scale = max(1.0, float(logits.abs().max()))
    difference = float((ours - logits).abs().max()) / scale
    export(spec, made, ExportOptions(weights=str(origin)))
    exported = GLINER(made, onnx=True, **asked)
    back.mkdir()
    convert(spec, str(origin), back)
    written = GLINER(back, onnx=False, beside=str(origin), **asked)
    arguments = [part for text in TEXTS for part in ("--text", text)]
    run = as_json("run", made, "--threshold", "0.02", "--labels", ",".join(LABELS), *arguments)
    found = (
        alike(exported["entities"], answer["entities"]),
        alike(run["entities"], answer["entities"]),
    )
    count = sum(map(len, answer["entities"]))
    print(
        f"{case}: {count} entities; PyTorch {difference:.1e}, scores by the library {found[0]:.1e}, by zoo run {found[1]:.1e}",
        file=sys.stderr,
    )
    assert count > 0
    assert difference < 1e-5
    assert max(found) < 1e-5
    assert written["entities"] == answer["entities"]
    assert written["same"]
