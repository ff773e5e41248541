"""Judging: the files and a reference run on the same inputs, one call after another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from exporters.cases import Batch, Case
from exporters.quality.examples import DECODED, Example, joined
from exporters.quality.generated import greedy
from exporters.quality.measures import token_error_rate
from exporters.quality.runners import Files, Runner, decoding
from exporters.quality.tallies import Tally, tally_for
from specs.errors import UserError, option_name
from specs.model import Model

NEW_TOKENS = 32
"""Tokens that an encoder-decoder says of each input."""

ROWS = 16
"""Inputs of which it says something at once."""


@dataclass(frozen=True)
class Speech:
    """How the output of an encoder-decoder starts and ends."""

    start: int = 0
    ends: Collection[int] = ()


def judge(
    spec: Model,
    examples: Sequence[Example],
    files: Files,
    reference: Runner | None,
    speech: Speech = Speech(),
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, float]:
    """The figures of the files against a reference; without one, only what the inputs themselves decide: perplexity.

    Raises :class:`specs.errors.UserError` where there is no such figure of the model.
    """
    check_judgeable(spec, has_reference=reference is not None)
    tally, pairs = tally_for(spec), []
    with torch.inference_mode():
        for done, example in enumerate(examples):
            progress(done)
            if spec.architecture == "encoder-decoder":
                assert reference is not None
                pairs.append(_speak(spec, example, files, reference, speech, tally))
            else:
                case = Case("judged", input_batch(spec, example))
                wanted = None if reference is None else reference.outputs(case)
                tally.add(case, wanted, files.outputs(case))
    found = tally.figures()
    return found | ({"token_error_rate": token_error_rate(pairs)} if pairs else {})


def check_judgeable(spec: Model, *, has_reference: bool) -> None:
    """Raise :class:`specs.errors.UserError` unless something can be measured of a model."""
    generates = spec.head.kind == "language_modeling"
    if spec.architecture == "encoder-decoder" and not generates:
        raise UserError(
            f"judging {spec.name} needs a head of kind language_modeling: what it says is compared\n"
            f"  value: head {spec.head.kind}\n  Judge it with {option_name('set')} head.kind=language_modeling."
        )
    if not has_reference and not (spec.architecture == "decoder" and generates):
        raise UserError(
            f"judging {spec.name} needs a model to compare with: it has no scores of a next token\n"
            f"  value: {spec.architecture}, head {spec.head.kind}\n"
            f"  Name the float model, or another export of it, with {option_name('against')}."
        )


def _speak(
    spec: Model, example: Example, files: Files, reference: Runner, speech: Speech, tally: Tally
) -> tuple[list[int], list[int]]:
    """What both say of an input, after their scores were compared on what the reference says."""
    most, encoder = _longest(spec), input_batch(spec, example)
    said = reference.greedy(encoder, speech.start, speech.ends, most)
    case = decoding(torch.tensor([[speech.start, *said[:-1]]]), encoder)
    tally.add(case, reference.outputs(case), files.outputs(case))
    return said, files.greedy_near(encoder, speech.start, speech.ends, most, said)


def said_by(spec: Model, model: Any, examples: Sequence[Example], speech: Speech) -> list[Example]:
    """The examples of an encoder-decoder, of one row each, with what its decoder reads to say what it says of them."""
    found = []
    for start in range(0, len(examples), ROWS):
        part = examples[start : start + ROWS]
        said = greedy(model, input_batch(spec, joined(part)), speech.start, speech.ends, _longest(spec))
        for example, tokens in zip(part, said, strict=True):
            found.append({**example, DECODED: torch.tensor([[speech.start, *tokens[:-1]]])})
    return found


def _longest(spec: Model) -> int:
    """How many tokens an encoder-decoder says at most."""
    assert spec.decoder is not None
    return min(NEW_TOKENS, (spec.context_length_of(spec.decoder) or NEW_TOKENS + 1) - 1)


def input_batch(spec: Model, example: Example) -> Batch:
    """An example as what goes into the first stack of a model."""
    name = spec.embedding_of(spec.encoder or spec.last_stack).input_name
    inputs, mask = example[name], example.get("attention_mask")
    return Batch(name, inputs, mask, None if mask is None else torch.zeros_like(inputs))


def cases_of(spec: Model, examples: Sequence[Example]) -> Iterator[Case]:
    """The examples as cases in which every output can be compared; an encoder-decoder's decoder reads what they say, or else
    one token."""
    for example in examples:
        batch = input_batch(spec, example)
        if spec.architecture != "encoder-decoder":
            yield Case("judged", batch)
        else:
            one = torch.zeros(len(batch.inputs), 1, dtype=torch.int64)
            yield decoding(example.get(DECODED, one), batch)
