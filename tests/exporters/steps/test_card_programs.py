"""The program on the card of an export runs as printed, and prints something sensible, for every head."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from typer.main import get_command

from cli.app import app
from exporters.layouts.onnx_usage import usage
from specs.base import registry
from specs.model.model import Model
from tests.cli.process import environment
from tests.exporters.models import written
from tests.exporters.steps.test_card import program
from tests.thinned import one_in
from tests.zoo import tiny
from zoo.files.card import CARD
from zoo.generation.settings import GENERATION
from zoo.record.manifest import read_manifest

HEADS: dict[str, dict[str, Any]] = {
    "none": {},
    "language_modeling": {},
    "masked_language_modeling": {"norm": {"kind": "layer_norm"}},
    "pooler": {},
    "pooled": {"pooling": "mean", "output": "sentence_embedding"},
    "classification": {"labels": 3, "pooling": "last"},
    "token_classification": {"labels": 3},
    "question_answering": {},
    "replaced_token_detection": {},
    "ctc": {"labels": 5},
    "multi_vector": {"projection": 5},
    "sparse": {"norm": {"kind": "layer_norm"}},
    "token_weights": {},
    "several": {"heads": {"dense": {"kind": "pooled", "pooling": "last"}, "weights": {"kind": "token_weights"}}},
    "spans": {"label_token": 2, "max_width": 3},
}  # fmt: skip
ALONE = {"distilled_classification", "contrastive", "detection", "masks", "patch_boxes"}
"""Heads of one kind of model."""

VECTORS = r"last_hidden_state \(1, \d+, 8\)"
SENSIBLE = {
    "none": VECTORS, "pooler": rf"{VECTORS}\npooler_output \(1, 8\)",
    "pooled": rf"{VECTORS}\nsentence_embedding \(1, 8\)",
    "masked_language_modeling": r"logits \(1, \d+, 20\)\nmost likely tokens \[\[[\d ]+\]\]",
    "classification": r"logits \(1, 3\)\nclass \[[012]\]",
    "token_classification": r"logits \(1, \d+, 3\)\nclass of each token \[\[[012 .]+\]\]",
    "question_answering": r"start_logits \(1, \d+\)\nend_logits \(1, \d+\)\nanswer: tokens \[\d+\] to \[\d+\]",
    "replaced_token_detection": r"logits \(1, \d+\)\nreplaced \[\[[ .TrueFals]+\]\]",
    "multi_vector": r"token_embeddings \(1, \d+, 5\)", "sparse": r"sentence_embedding \(1, 20\)",
    "token_weights": r"token_weights \(1, \d+\)",
    "several": rf"{VECTORS}\npooler_output \(1, 8\)\ntoken_weights \(1, \d+\)",
    "spans": r"logits \(1, \d+, 3, \d\)", "ctc": r"logits \(1, \d+, 5\)\nlabels \[[1-4 \n.]*\]",
}  # fmt: skip
"""What the program prints, by the kind of the head; decoders that score the next token print what they generate."""

GENERATED = r"\[[\d \n]+\]"
SCORES = r"logits \(1, \d+, 20\)\nmost likely tokens \[\[[\d ]+\]\]"


def _ran(directory: Path) -> str:
    """What the program of a card prints."""
    path = directory.with_suffix(".py")
    path.write_text(program(directory))
    return _run(directory, path)


def _run(directory: Path, path: Path) -> str:
    """What a program prints in an export's directory, in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=directory, env=environment(), capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _sensible(spec: Model) -> str:
    kind = spec.head.kind
    return (GENERATED if spec.decodes else SCORES) if kind == "language_modeling" else SENSIBLE[kind]


def _models() -> list[tuple[str, str]]:
    """Every kind of model with every head that it takes."""
    found = []
    for name in ("bert", "gpt2", "t5", "vit", "wav2vec2", "whisper", "moonshine", "trocr", "llava", "packed"):
        for head in HEADS:
            try:
                getattr(tiny, name)(head={"kind": head, **HEADS[head]})
            except ValueError:
                continue
            found.append((name, head))
    return found


MODELS = _models()


def test_every_head_is_tried() -> None:
    assert {*HEADS, *ALONE} >= {*registry.kinds("head")}
    assert len(MODELS) > 80
    assert {head for _, head in MODELS} == {*HEADS}


@one_in(100)
@pytest.mark.parametrize(("name", "head"), MODELS)
def test_the_program_runs_whatever_the_head(tmp_path: Path, name: str, head: str) -> None:
    spec = getattr(tiny, name)(head={"kind": head, **HEADS[head]})
    written(spec, tmp_path / "x", verify=False)
    assert re.fullmatch(_sensible(spec), _ran(tmp_path / "x")), program(tmp_path / "x")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "llava", "packed"])
@pytest.mark.parametrize(
    ("head", "options"),
    [
        *((head, {"target": "cpu", "precision": "int8"}) for head in ("language_modeling", "classification")),
        *(
            (head, {"target": "tensorrt", "cache_length": 16})
            for head in ("language_modeling", "classification")
        ),
        ("classification", {"precision": "fp16"}),
        ("language_modeling", {"logits": "last"}),
    ],
    ids=str,
)
def test_the_program_runs_on_every_target(tmp_path: Path, name: str, head: str, options: Any) -> None:
    changes = {"context_length": 32} if name == "gpt2" else {}
    spec = getattr(tiny, name)(head={"kind": head, **HEADS[head]}, **changes)
    written(spec, tmp_path / "x", verify=False, **options)
    printed = _ran(tmp_path / "x")
    assert re.search(_sensible(spec), printed), printed


@pytest.mark.slow
def test_models_of_texts_and_images_print_their_scores(tmp_path: Path) -> None:
    written(tiny.clip(), tmp_path / "clip", verify=False)
    assert re.fullmatch(r"\[\[-?\d+\.\d+\]\]", _ran(tmp_path / "clip"))


@pytest.mark.parametrize(
    ("name", "given"),
    [("gpt2", "--ids 1,2,3,4"), ("whisper", "--audio speech.wav"), ("llava", "--image picture.png --ids 1,2,3,4")],
)  # fmt: skip
def test_a_cache_that_numpy_does_not_have_is_run_by_zoo(tmp_path: Path, name: str, given: str) -> None:
    written(getattr(tiny, name)(), tmp_path / "x", weights="none", verify=False, precision="bf16")
    command = program(tmp_path / "x", "sh").strip()
    assert command == f"zoo run . {given}"
    parser: Any = get_command(app)
    arguments = command.split()[2:]
    assert parser.commands["run"].make_context("zoo run", arguments).params["directory"] == Path()


@pytest.mark.slow
def test_generating_begins_and_ends_with_the_tokens_of_the_checkpoint(tmp_path: Path) -> None:
    spec, directory = tiny.t5(), tmp_path / "x"
    written(spec, directory, verify=False)
    manifest = read_manifest(directory)
    files = {**manifest.files, GENERATION: next(iter(manifest.files.values()))}
    (tmp_path / "x.py").write_text(usage(spec, manifest.model_copy(update={"files": files})).code)

    def generated(settings: dict[str, Any]) -> list[int]:
        (directory / GENERATION).write_text(json.dumps(settings))
        return [int(number) for number in re.findall(r"\d+", _run(directory, tmp_path / "x.py"))]

    unlimited = generated({"decoder_start_token_id": 7})
    assert unlimited[0] == 7
    assert len(unlimited) == 21
    assert generated({"bos_token_id": 5})[0] == 5
    assert generated({"decoder_start_token_id": 7, "eos_token_id": [99, unlimited[1]]}) == unlimited[:2]


LLAMA_BLOCK = {
    **tiny.BLOCK,
    "norm": {"kind": "rms_norm"},
    "attention": {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "bias": False},
}


@pytest.mark.parametrize(
    ("target", "cached"), [("portable", {}), ("cpu", {}), ("tensorrt", {"cache_length": 10})]
)
def test_the_card_states_how_rows_share_a_call(tmp_path: Path, target: str, cached: Any) -> None:
    spec = tiny.gpt2(d_model=64, position={"kind": "rope"}, decoder={"layers": 2, "block": LLAMA_BLOCK})
    written(spec, tmp_path / "x", target=target, verify=False, **cached)
    text = (tmp_path / "x" / CARD).read_text("utf-8")
    stated = {
        "portable": "Pad the rows of a batch on either side, with 0 in `attention_mask`.",
        "cpu": "Pad the rows of a batch on the right, with 0 in `attention_mask`.",
        "tensorrt": "Pad the rows of a batch on the right, with -1 in `position_ids`.",
    }
    assert stated[target] in text
    assert ("several tokens of a single row (batch 1)" in text) == (target == "cpu")
    if target != "tensorrt":
        assert _takes_several_rows(tmp_path / "x") == (target == "portable")


def _takes_several_rows(directory: Path) -> bool:
    """Whether a graph takes several tokens after a past of two rows."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(directory / "model.onnx", options)
    past = {}
    for each in session.get_inputs():
        if each.name.startswith("past_"):
            _, heads, _, width = each.shape
            past[each.name] = np.zeros((2, heads, 3, width), np.float32)
    ids, mask = np.ones((2, 2), np.int64), np.ones((2, 5), np.int64)
    try:
        session.run(None, {"input_ids": ids, "attention_mask": mask, **past})
    except Exception:
        return False
    return True


def test_encoders_have_no_word_on_caches(tmp_path: Path) -> None:
    written(tiny.bert(), tmp_path / "x", verify=False)
    assert "## Batches" not in (tmp_path / "x" / CARD).read_text("utf-8")
