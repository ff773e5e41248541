"""Output of ``zoo run``: streamed text, vectors, classes, masked tokens, and the outputs of other heads by name."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from cli.running.timing import LoadedGenerator, tell_generated, tell_how
from cli.terminal.render import Column, print_json, print_table, say, say_piece
from cli.terminal.screen import screen_width
from exporters.runtime.text import Stream
from zoo.core.units import time_text

if TYPE_CHECKING:
    from cli.options.run_inputs import RunInputs
    from exporters.runtime.encoding import EncodedVectors, EncoderRunner
    from exporters.runtime.exported import Exported
    from exporters.runtime.generation import Continuation, Generation
    from exporters.runtime.graph import Floats
    from exporters.runtime.model_inputs import ModelInputs
    from exporters.runtime.text import TextTokenizer
    from zoo.generation.sampling import Sampling

BEST = 5
"""Number of tokens or classes to print."""


@dataclass(frozen=True)
class RunContext:
    """An export, its tokenizer if any, its inputs, and whether to print JSON, or the output alone."""

    exported: Exported
    text: TextTokenizer | None
    inputs: RunInputs
    as_json: bool
    quiet: bool = False

    @property
    def values(self) -> ModelInputs:
        """The inputs of the model."""
        return self.inputs.values

    @property
    def streams(self) -> bool:
        """Whether each token is printed at once, as for a single prompt."""
        return not self.as_json and len(self.values) == 1

    @property
    def column(self) -> Column:
        """The column that names the inputs."""
        return Column(self.inputs.what, prose=20, pinned=True)

    def name(self, token: int) -> str:
        """The text of a token, or its id."""
        return str(token) if self.text is None else self.text.token(token)

    def words(self, ids: Sequence[int]) -> str:
        """Tokens as text, or as comma-separated ids."""
        return ",".join(map(str, ids)) if self.text is None else self.text.text(ids)

    def label(self, index: int) -> str:
        """The name of a file, or a prompt; cut to fit a table row."""
        words = self.inputs.names[index] or " ".join(self.words(cast(Any, self.values[index])).split())
        return words if len(words) <= 60 else f"{words[:57]}..."


def print_generated(
    shown: RunContext, sampling: Sampling, most: int, stop: Collection[int] | None, start: int | None
) -> None:
    """Continue the prompts; a single one is streamed token by token."""
    from exporters.runtime.generation import Generator

    exported = shown.exported
    prompts: Any = shown.values
    generator = Generator(exported)
    tell_not_applied(shown, sampling)
    first_id = exported.settings.start if start is None else start
    done = generator.generate(
        prompts,
        most,
        sampling,
        stop=stop,
        start=first_id,
        images=shown.inputs.images,
        tell=token_printer(shown),
    )
    if shown.as_json:
        print_json(generation_data(shown, generator, done))
        return
    print_continuations(shown, done)
    tell_generated(generator, done, most, quiet=shown.quiet)


def generation_data(shown: RunContext, generator: LoadedGenerator, done: Generation) -> dict[str, Any]:
    """A generation as JSON data."""
    return {
        "name": shown.exported.spec.name,
        "provider": generator.provider,
        "load_seconds": generator.load_seconds,
        "first_token_seconds": done.first,
        "tokens_per_second": done.tokens_per_second,
        "sequences": [
            _data(shown, index, continuation) for index, continuation in enumerate(done.continuations)
        ],
    }


def print_continuations(shown: RunContext, done: Generation) -> None:
    """Print the continuation of each prompt, or end the line of one that was streamed."""
    if shown.streams:
        say()
        return
    for index, continuation in enumerate(done.continuations):
        source = shown.inputs.names[index] or shown.words(continuation.prompt)
        say(f"{source} -> {shown.words(continuation.ids)}")


def tell_not_applied(shown: RunContext, sampling: Sampling) -> None:
    """Name the settings of the checkpoint that change what transformers generates and are not applied, on stderr, unless
    quiet."""
    settings, draws = shown.exported.settings, sampling.temperature > 0
    if shown.quiet:
        return
    if names := settings.not_applied(sampling=draws):
        say(f"Not applied, as {settings.where} states it: {', '.join(names)}.", "yellow", err=True)
    if not draws and settings.samples:
        sampling_defaults = settings.sampling
        values = (
            ", ".join(f"{name} {value}" for name, value in sampling_defaults.items())
            or "the model's probabilities"
        )
        hint = f"Decoding is greedy; --temperature {sampling_defaults.get('temperature', 1.0)} samples so."
        say(f"{settings.where} states sampling with {values}. {hint}", "dim", err=True)


def token_printer(shown: RunContext) -> Callable[[list[int]], None]:
    """Return a callback that prints each new token, the first after the prompt that it continues: a refused prompt is not printed."""
    if not shown.streams:
        return lambda tokens: None
    piece = _ids_with_commas() if shown.text is None else Stream(shown.text).piece
    unsaid = list(shown.values[0]) if shown.exported.spec.architecture == "decoder" else []

    def tell(tokens: list[int]) -> None:
        say_piece("".join(map(piece, [*unsaid, tokens[0]])))
        unsaid.clear()

    return tell


def _ids_with_commas() -> Callable[[int], str]:
    separators = itertools.chain([""], itertools.repeat(","))
    return lambda token: f"{next(separators)}{token}"


def _data(shown: RunContext, index: int, continuation: Continuation) -> dict[str, Any]:
    name = shown.inputs.names[index]
    source = {shown.inputs.what: name} if name else {"prompt_ids": continuation.prompt}
    data = {**source, "ids": continuation.ids, "ending": continuation.ending}
    return data if shown.text is None else {**data, "text": shown.text.text(continuation.ids)}


def print_encoded(
    shown: RunContext,
    queries: RunContext | None,
    head_weights: Mapping[str, float],
    labels: Sequence[str] = (),
    threshold: float = 0.0,
) -> None:
    """Print vectors, classes or masked tokens, depending on the head, or else its outputs by name; with queries, a ranking for
    each, and with labels, the entities whose scores are above the threshold."""
    from cli.running.retrieval import print_ranking, print_retrieval
    from cli.running.spans import print_entities
    from exporters.runtime.encoding import CLASSES, MASKS, RETRIEVAL, SPEECH, VECTORS, EncoderRunner

    encoder = EncoderRunner(shown.exported)
    head = shown.exported.spec.head
    begun = time.perf_counter()
    if queries is not None:
        data = print_ranking(shown, queries, encoder, head_weights)
    elif labels:
        data = print_entities(shown, encoder, labels, threshold)
    elif isinstance(head, CLASSES):
        data = _print_classes(shown, encoder)
    elif isinstance(head, MASKS):
        data = _print_masked(shown, encoder)
    elif isinstance(head, SPEECH):
        data = _print_spoken(shown, encoder)
    elif isinstance(head, RETRIEVAL):
        data = print_retrieval(shown, encoder, head_weights)
    elif isinstance(head, VECTORS):
        data = _print_vectors(shown, encoder)
    else:
        data = _print_outputs(shown, encoder)
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


def print_scores(title: str, scores: Floats) -> None:
    """Print a table of scores of every input for every other, N N; nothing for a single input."""
    if len(scores) < 2:
        return
    names = [str(row) for row in range(len(scores))]
    rows = [[name, *(f"{value:.4f}" for value in row)] for name, row in zip(names, scores, strict=True)]
    say()
    print_table(
        [Column(title, pinned=True), *(Column(name, right=True) for name in names)], rows, screen_width()
    )


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


def _best(shares: Floats) -> list[int]:
    return [int(token) for token in (-shares).argsort(kind="stable")[:BEST]]
