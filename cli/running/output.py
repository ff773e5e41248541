"""Output of ``zoo run``: the context that all outputs share, streamed and continued texts, and tables of scores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from cli.running.timing import LoadedGenerator, tell_generated
from cli.terminal.render import Column, print_json, print_table, say, say_piece
from cli.terminal.screen import screen_width
from exporters.runtime.text import Stream

if TYPE_CHECKING:
    from cli.options.run_inputs import RunInputs
    from exporters.runtime.exported import Exported
    from exporters.runtime.generation import Continuation, Generation
    from exporters.runtime.graph import Floats
    from exporters.runtime.model_inputs import ModelInputs
    from exporters.runtime.text import TextTokenizer
    from zoo.generation.sampling import Sampling


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
