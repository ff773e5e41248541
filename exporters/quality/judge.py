"""Judging: running the files and a reference on the same inputs, case by case."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from exporters.quality.examples import DECODED, Example, joined
from exporters.quality.generated import greedy
from exporters.quality.measures import token_error_rate
from exporters.quality.pairs import placeholder_of
from exporters.quality.runners import Files, Runner, decoding
from exporters.quality.tallies import Tally, figures_of, scores_next_tokens, tally_for
from exporters.verification.cases import Batch, Case
from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.components.spans import words_of
from zoo.core.graph_names import GRID
from zoo.core.token_inputs import token_inputs
from zoo.generation.prompts import check_reads_alone

NEW_TOKENS = 32
"""The number of tokens that an encoder-decoder generates per input."""

ROWS = 16
"""The batch size of generation."""


LABELS = 3
"""The number of labels of a head that scores spans."""


@dataclass(frozen=True)
class Speech:
    """The start and end tokens of an encoder-decoder's output."""

    start: int = 0
    ends: Collection[int] = ()


class Judgement(NamedTuple):
    """The figures of all examples, and of each kind of text, if there are several."""

    figures: dict[str, float]
    kinds: dict[str, dict[str, float]]


def judge(
    spec: Model,
    examples: Sequence[Example],
    files: Files,
    reference: Runner | None,
    speech: Speech = Speech(),
    progress: Callable[[int], None] = lambda done: None,
    kinds: Sequence[str] = (),
    new_tally: Callable[[], Tally] | None = None,
) -> Judgement:
    """The figures of the files against a reference; without a reference only perplexity.

    ``kinds`` are the kinds of text of the examples; none if they are all alike. ``new_tally`` gives figures other than the head's.

    Raises :class:`specs.base.errors.UserError` for a model without perplexity.
    """
    check_judgeable(spec, has_reference=reference is not None)
    new_tally = new_tally or functools.partial(tally_for, spec)
    tallies, pairs = dict[str, Tally](), []
    with torch.inference_mode():
        for done, example in enumerate(examples):
            progress(done)
            tally = tallies.setdefault(kinds[done] if kinds else "", new_tally())
            if spec.architecture == "encoder-decoder":
                assert reference is not None
                pairs.append(_speak(spec, example, files, reference, speech, tally))
            else:
                case = _case_of(spec, example)
                wanted = None if reference is None else reference.outputs(case)
                tally.add(case, wanted, files.outputs(case))
    figures = figures_of(tallies.values(), new_tally())
    figures |= {"token_error_rate": token_error_rate(pairs)} if pairs else {}
    of_kinds = {kind: tally.figures() for kind, tally in tallies.items()} if len(tallies) > 1 else {}
    return Judgement(figures, of_kinds)


def check_judgeable(spec: Model, *, has_reference: bool) -> None:
    """Raise :class:`specs.base.errors.UserError` unless a model has a figure to measure."""
    check_reads_alone(spec)
    generates = spec.head.kind == "language_modeling"
    if spec.architecture == "encoder-decoder" and not generates:
        raise UserError(
            f"Judging {spec.name} needs a head of kind language_modeling, to compare generated text\n"
            f"  value: head {spec.head.kind}\n  Judge it with {option_name('set')} head.kind=language_modeling."
        )
    if not has_reference and not scores_next_tokens(spec):
        raise UserError(
            f"Judging {spec.name} needs a model to compare with, as it does not score next tokens\n"
            f"  value: {spec.architecture}, head {spec.head.kind}\n"
            f"  Name the float model, or another export of it, with {option_name('against')}."
        )


def _speak(
    spec: Model, example: Example, files: Files, reference: Runner, speech: Speech, tally: Tally
) -> tuple[list[int], list[int]]:
    """Compare the scores of both on the reference's output for an input; return the reference's and the files' outputs."""
    most, encoder = _longest(spec), input_batch(spec, example)
    said = reference.greedy(encoder, speech.start, speech.ends, most)
    case = decoding(torch.tensor([[speech.start, *said[:-1]]]), encoder)
    tally.add(case, reference.outputs(case), files.outputs(case))
    return said, files.greedy_near(encoder, speech.start, speech.ends, most, said)


def with_decoder_inputs(
    spec: Model, model: Any, examples: Sequence[Example], speech: Speech
) -> list[Example]:
    """Split an encoder-decoder's examples into single rows, and add decoder inputs from its own greedy output."""
    decoded = []
    for start in range(0, len(examples), ROWS):
        part = examples[start : start + ROWS]
        said = greedy(model, input_batch(spec, joined(part)), speech.start, speech.ends, _longest(spec))
        for example, tokens in zip(part, said, strict=True):
            decoded.append({**example, DECODED: torch.tensor([[speech.start, *tokens[:-1]]])})
    return decoded


def _longest(spec: Model) -> int:
    """The largest number of tokens to generate with an encoder-decoder."""
    return min(NEW_TOKENS, (spec.context_length_of(spec.stack("decoder")) or NEW_TOKENS + 1) - 1)


def input_batch(spec: Model, example: Example) -> Batch:
    """An example as the input of a model's first stack."""
    embedding = spec.embedding_of(spec.first_stack)
    name = embedding.input_name
    inputs, mask = example[name], example.get("attention_mask")
    if mask is not None and inputs.is_floating_point():
        counts = [embedding.vector_count(int(count)) for count in mask.sum(1)]
        frames = torch.arange(max(counts)) < torch.tensor(counts)[:, None]
        return Batch(name, inputs, mask, frames=frames.to(torch.int64))
    types = None if mask is None else torch.zeros_like(inputs)
    beside = {} if types is None else token_inputs(embedding, types)
    if spec.head.span_width is not None and mask is not None:
        return _labelled(spec, Batch(name, inputs, mask, types, beside=beside))
    return Batch(name, inputs, mask, types, beside=beside)


def _labelled(spec: Model, batch: Batch) -> Batch:
    """A batch of texts whose tokens are words, after labels: the first tokens of the text itself, each after the label token."""
    token, width = spec.head.token_to_find, spec.head.span_width
    assert batch.mask is not None
    assert width is not None
    assert token is not None
    most = (spec.context_length_of(spec.first_stack) or batch.inputs.shape[1] + 2 * LABELS) - 2 * LABELS
    ids, mask = batch.inputs[:, : max(1, most)], batch.mask[:, : max(1, most)]
    labels = ids[:, :1].repeat(1, 2 * LABELS)
    labels[:, ::2] = token
    for index in range(LABELS):
        labels[:, 2 * index + 1] = ids[:, min(index, ids.shape[1] - 1)]
    words = torch.cat((torch.zeros_like(labels), mask.cumsum(1) * mask), 1)
    ids, mask = torch.cat((labels, ids), 1), torch.cat((torch.ones_like(labels), mask), 1)
    spans = words_of(words, max(1, int(words.max())), width).inputs
    types = torch.zeros_like(ids)
    beside = token_inputs(spec.embedding_of(spec.first_stack), types)
    return Batch(batch.name, ids, mask, types, beside={**beside, **spans})


def cases_of(spec: Model, examples: Sequence[Example]) -> Iterator[Case]:
    """Convert examples to cases for comparing every output; an encoder-decoder's decoder reads the example's decoder input, or
    one token."""
    for example in examples:
        if spec.architecture != "encoder-decoder":
            yield _case_of(spec, example)
        else:
            batch = input_batch(spec, example)
            one = torch.zeros(len(batch.inputs), 1, dtype=torch.int64)
            yield decoding(example.get(DECODED, one), batch)


def _case_of(spec: Model, example: Example) -> Case:
    """Convert an example to a case, with its images as the second input; not for encoder-decoders."""
    batch = input_batch(spec, example)
    if spec.image is None:
        return Case("judged", batch)
    name = spec.embedding_of(spec.image).input_name
    grids, connector = example.get(GRID), spec.connector
    joined = connector.square**2 if grids is not None and connector is not None else 1
    images = Batch(name, example[name], grids=grids, joined=joined)
    return Case("judged", batch, encoder=images, reads_encoder=False, placeholder=placeholder_of(spec))
