"""Pipelines of transformers.js on exports of tiny checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.clients.checkpoints import EOS, Checkpoint, checkpoint
from tests.clients.client import TRANSFORMERS_JS
from zoo import import_checkpoint

SIDE = 32
MASK = "<mask>"
KINDS = ["temple", "flower", "sea", "cat"]
LABELS = {"id2label": dict(enumerate(KINDS)), "label2id": {kind: place for place, kind in enumerate(KINDS)}}


def deployed(make: Callable[[], Any], processor: Any, tmp_path: Path, *marks: str) -> Checkpoint:
    """A checkpoint with a processor, if any, and further special tokens, exported for the client."""
    origin = checkpoint(make, tmp_path / "reference", marks=marks)
    if processor is not None:
        processor.save_pretrained(origin.directory)
    if MASK in marks:
        origin.tokenizer.mask_token = MASK
    origin.tokenizer.padding_side, origin.tokenizer.sep_token = "right", EOS
    origin.tokenizer.save_pretrained(origin.directory)
    options = ExportOptions(weights=str(origin.directory), layout="transformers-js", verify=False)
    export(import_checkpoint(origin.directory), tmp_path / "deployed", options)
    return origin


def piped(tmp_path: Path, task: str, images: list[Image.Image] | None = None, **more: Any) -> list[Any]:
    """What the client's pipeline makes of each input."""
    raw = [{"bytes": list(each.tobytes()), "side": SIDE} for each in images or []]
    (answer,) = TRANSFORMERS_JS(tmp_path / "deployed", piped={"task": task, "images": raw, **more})
    found: list[Any] = answer["found"]
    return found


def by_label(scores: torch.Tensor, labels: list[str]) -> list[dict[str, float]]:
    """The probability of each label in each row."""
    return [dict(zip(labels, row.softmax(-1).tolist(), strict=True)) for row in scores]


def assert_near(task: str, found: list[Any], expected: list[dict[str, float]]) -> None:
    """The client's scores are those of the reference, and those of two inputs differ."""
    got = [{each["label"]: each["score"] for each in answer} for answer in found]
    far = max(
        abs(ours[label] - score)
        for ours, row in zip(got, expected, strict=True)
        for label, score in row.items()
    )
    print(f"{task}: transformers.js differs from transformers by at most {far:.1e}\n  {got}")
    assert far < 1e-5
    assert max(abs(expected[0][label] - expected[1][label]) for label in expected[0]) > 1e-3
