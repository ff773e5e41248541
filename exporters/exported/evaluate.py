"""Judging an existing export (``zoo eval``)."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

from exporters.exported.load_export import options_of, weights_of
from exporters.exported.model_source import ModelSource
from exporters.graph.precisions import PRECISIONS
from exporters.layouts import LAYOUTS
from exporters.preprocessing import Preprocessing
from exporters.quality.drafts import DraftRunner, DraftTally, NextTokenRunner, RememberedFiles
from exporters.quality.inputs import random_inputs, representative
from exporters.quality.judge import check_judgeable, judge
from exporters.quality.parts import Representative
from exporters.quality.quality import Quality
from exporters.quality.quality_inputs import speech_of, with_costs
from exporters.quality.runners import Files, FloatModel, Runner
from exporters.runtime.draft import check_draft
from exporters.runtime.exported import Exported
from exporters.runtime.text import find_text
from exporters.steps.plan import Plan
from exporters.target.targets import TARGETS
from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.core.progress import Progress, Stage


def evaluate(
    exported: Exported,
    against: ModelSource | None,
    text: Path | None,
    tokenizer: Path | None,
    progress: Progress,
    *,
    costs: bool = False,
) -> Quality:
    """The figures of an export, compared with a model or another export where ``against`` names one.

    ``text`` is a file as in :mod:`exporters.quality.inputs` (default: the corpus; random ids for random weights).
    ``costs`` adds the cost of each part of the model. Raises :class:`specs.base.errors.UserError` for options that exclude
    each other.
    """
    spec, random = exported.spec, exported.manifest.weights == "random"
    if against is None and random:
        against = ModelSource(spec, "random", exported.directory)
    check_judgeable(spec, has_reference=against is not None)
    if against is not None:
        _check_alike(exported, against)
    if costs and (against is None or against.exported is not None):
        raise UserError(
            "The cost of each part needs a float model in PyTorch to compare with\n"
            f"  Name a spec or a checkpoint with {option_name('against')}, or leave out {option_name('per_layer')}."
        )
    inputs = _inputs(exported, against, text, tokenizer, random=random)
    progress(Stage("load the files"))
    files = files_of(exported)
    reference, name, model = _reference(exported, against, progress)
    count = len(inputs.judged)

    def tell(done: int) -> None:
        progress(Stage(f"input {done + 1} of {count}"))

    origin = exported.directory if against is None else against.origin
    figures, kinds = judge(spec, inputs.judged, files, reference, speech_of(origin), tell, inputs.kinds)
    quality = Quality(inputs.description, name, figures, kinds=kinds)
    if not costs:
        return quality
    return with_costs(spec, model, lambda model: weights_of(exported, model), inputs, quality, progress)


def predict_draft(
    target: Exported,
    draft: Exported,
    draft_tokens: int,
    text: Path | None,
    tokenizer: Path | None,
    progress: Progress,
) -> Quality:
    """The share of a draft's tokens that the target accepts on a text, and the tokens per call of the target for ``draft_tokens``
    proposals at a time.

    ``text`` and ``tokenizer`` as in :func:`evaluate`. Raises :class:`specs.base.errors.UserError` as
    :func:`exporters.runtime.draft.check_draft` does.
    """
    check_draft(target, draft)
    spec = _in_both_contexts(target.spec, draft.spec)
    random = target.manifest.weights == "random"
    inputs = _inputs(replace(target, spec=spec), None, text, tokenizer, random=random)
    progress(Stage("load the files"))
    vocabulary = draft.spec.vocab_size
    assert vocabulary is not None
    files, runner = files_of(target), DraftRunner(files_of(draft), vocabulary)
    if draft.spec.reads_hidden_states:
        files = RememberedFiles(files.loaded, files.per_token)
        runner = NextTokenRunner(runner.files, vocabulary, files, draft_tokens)
    count = len(inputs.judged)

    def tell(done: int) -> None:
        progress(Stage(f"input {done + 1} of {count}"))

    figures, kinds = judge(
        spec,
        inputs.judged,
        files,
        runner,
        progress=tell,
        kinds=inputs.kinds,
        new_tally=functools.partial(DraftTally, draft_tokens),
    )
    name = f"{draft.directory}, which drafts {draft_tokens} tokens at a time"
    return Quality(inputs.description, name, figures, kinds=kinds)


def _in_both_contexts(target: Model, draft: Model) -> Model:
    """The target's spec, with a decoder whose context is no longer than the draft's."""
    lengths = [spec.context_length_of(spec.stack("decoder")) for spec in (target, draft)]
    shortest = min(filter(None, lengths), default=None)
    decoder = target.stack("decoder").model_copy(update={"context_length": shortest})
    return target.model_copy(update={"decoder": decoder})


def files_of(exported: Exported) -> Files:
    """The graphs of an export, loaded as a client would."""
    options = options_of(exported)
    target = LAYOUTS[options.layout].target(TARGETS[options.target])
    graphs = {
        exported.directory / name: task
        for name, task in Plan.make(exported.spec, options).graph_paths.items()
    }
    return Files.open(graphs, exported.spec, target, PRECISIONS[options.precision])


def _reference(
    exported: Exported, against: ModelSource | None, progress: Progress
) -> tuple[Runner | None, str, Any]:
    """The model to compare with, its name, and its PyTorch module if it has one."""
    if against is None:
        return None, "", None
    progress(Stage("load the reference model"))
    if against.exported is not None:
        return files_of(against.exported), str(against.exported.directory), None
    model, weights = against.model(exported.manifest.seed or 0)
    return FloatModel(model), f"PyTorch, float32, weights {weights}", model


def _check_alike(exported: Exported, against: ModelSource) -> None:
    """Raise :class:`specs.base.errors.UserError` unless the outputs of two models can be compared."""
    ours, theirs = exported.spec, against.spec
    for what, first, second in (
        ("architecture", ours.architecture, theirs.architecture),
        ("vocab_size", ours.vocab_size, theirs.vocab_size),
        ("head.kind", ours.head.kind, theirs.head.kind),
    ):
        if first != second:
            raise UserError(
                f"{ours.name} and {theirs.name} cannot be compared: {what} must be the same\n"
                f"  value: {first} and {second}\n  Name the model that the export was made from with {option_name('against')}."
            )
    if against.weights == "random" and exported.manifest.weights == "checkpoint":
        raise UserError(
            f"{theirs.name} has no weights to compare with\n"
            f"  Name them with {option_name('weights')}: the checkpoint that the export was made from."
        )


def _inputs(
    exported: Exported,
    against: ModelSource | None,
    text: Path | None,
    tokenizer: Path | None,
    *,
    random: bool,
) -> Representative:
    takes_tokens = exported.spec.embedding_of(exported.spec.first_stack).takes_tokens
    if text is None and random and takes_tokens:
        return random_inputs(exported.spec)
    places = [exported.directory]
    text_reader = find_text(exported.directory, tokenizer, needed=text is not None)
    if against is not None and against.exported is None:
        places.append(against.origin)
        text_reader = text_reader or find_text(against.origin, None, needed=text is not None)
    return representative(
        exported.spec, text, text_reader, Preprocessing.beside(*places), calibrates=False, option="data"
    )
