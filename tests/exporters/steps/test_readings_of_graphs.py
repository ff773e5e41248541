"""Readings of single graphs are kept while the layers of another stack change, and equal those that are made anew."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import exporters.steps.stored_size as sizing
import zoo.reports.costs as costing
import zoo.reports.training as trained
from benchmarks import studio
from cli.studio.opened_spec import opened
from cli.studio.typed_spec import TypedSpec
from exporters.steps.stored_size import stored_sizes
from specs.base.roles import rewritten
from specs.language.load import load
from specs.model.model import Model
from specs.model.stack import StackName
from tests.exporters.reduced_presets import preset, structures
from tests.thinned import one_in
from zoo.reports.costs import costs
from zoo.reports.training import trainings
from zoo.tracing.traced_model import TracedModel
from zoo.tracing.tracer import Tracer

SEVERAL = [name for name in structures() if len(list(preset(name).stacks())) > 1]
QUICK = ["clip-vit-b32", "smolvlm-256m", "t5-small"]


def edits(spec: Model, more: int = 64) -> Iterator[Model]:
    """The spec with wider feed-forward networks in one stack, for each stack in turn."""

    def wider(part: Any) -> dict[str, int]:
        return {
            name: getattr(part, name) + more
            for name in ("hidden",)
            if isinstance(getattr(part, name, None), int)
        }

    for name, stack in spec.stacks():
        yield spec.model_copy(update={name: rewritten(stack, wider)})


def read(spec: Model) -> tuple[Any, dict[str, int], list[Any]]:
    steps = trainings(spec, (torch.float16, torch.float32))
    return costs(spec).as_dict(), stored_sizes(spec, "portable"), [step.as_dict() for step in steps.values()]


def check(specs: Sequence[Model], monkeypatch: pytest.MonkeyPatch) -> None:
    """Read specs one after the other with readings that are kept, and again without."""
    kept = [read(spec) for spec in specs]
    monkeypatch.setattr(TracedModel, "key", lambda *_: None)
    for module, name in ((costing, "_reduced"), (trained, "_reduced"), (sizing, "_items_by_precision")):
        monkeypatch.setattr(module, name, getattr(module, name).__wrapped__)
    assert kept == [read(spec) for spec in specs]


@one_in(3)
@pytest.mark.parametrize("name", QUICK)
def test_readings_are_equal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check([load(name), *edits(load(name))], monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SEVERAL if name not in QUICK])
def test_readings_are_equal_for_every_structure(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check([load(name), *edits(load(name))], monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["bart-base", "t5gemma-2b-2b", "whisper-tiny", "vit-gpt2", "smolvlm-256m", "clip-vit-b32", "gemma3-1b"],
)
def test_readings_are_equal_after_edits_in_any_order(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = opened(name).text
    texts = [text, *itertools.islice(studio.edits(text, tmp_path), 16)]
    order = random.Random(name).choices(texts, k=24)
    check([TypedSpec.read(text, tmp_path).model for text in order], monkeypatch)


@pytest.mark.parametrize(
    ("name", "stack", "kept", "again"),
    [
        ("smolvlm-256m", "decoder", "pixel_values", "input_ids"),
        ("whisper-tiny", "decoder", "input_features", "input_ids"),
        ("whisper-tiny", "encoder", "input_ids", "input_features"),
    ],
)
def test_an_edit_of_a_stack_traces_no_other(
    name: str, stack: StackName, kept: str, again: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = load(name)
    edited = dict(zip([name for name, _ in spec.stacks()], edits(spec, 192), strict=True))[stack]
    read(spec)
    traced = list[str]()
    run = Tracer.run

    def counted(self: Tracer, call: Any, inputs: Any) -> Any:
        traced.extend(placeholder.name for placeholder in inputs)
        return run(self, call, inputs)

    monkeypatch.setattr(Tracer, "run", counted)
    read(edited)
    assert again in traced
    assert kept not in traced
