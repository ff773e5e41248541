"""How a model ran: speed, device, and why its texts ended; on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cli.terminal.render import say
from zoo.core.units import time_text

if TYPE_CHECKING:
    from exporters.runtime.generation import Generation

_ENDINGS = {
    "max_new_tokens": "at --max-new-tokens ({most})",
    "stop token": "at a stop token",
    "end of context": "at the end of the context",
}
"""Why a text ended, in words that follow "stopped"."""


class LoadedGenerator(Protocol):
    """The graphs of a generator, loaded."""

    provider: str
    load_seconds: float


def tell_generated(
    generator: LoadedGenerator, done: Generation, most: int, *, quiet: bool, beside: str = ""
) -> None:
    """Print the number of tokens, the speed, a comparison ``beside`` it, and why the texts ended."""
    count = sum(len(continuation.ids) for continuation in done.continuations)
    rate = done.tokens_per_second
    speed = "" if rate is None else f", then {rate:,.1f} tokens/s{beside}"
    endings = dict.fromkeys(_ENDINGS[continuation.ending] for continuation in done.continuations)
    stopped = f"stopped {' or '.join(endings).format(most=most)}"
    if not quiet:
        say(f"{count} token{'s' * (count != 1)}, {stopped}", "dim", err=True)
    first = f"first token after {time_text(done.first)}{speed}"
    tell_how(generator.provider, generator.load_seconds, first, quiet=quiet)


def tell_how(provider: str, load: float, what: str, *, quiet: bool) -> None:
    """Print how fast and where a model ran."""
    if not quiet:
        name = provider.removesuffix("ExecutionProvider")
        say(f"{what}; loaded in {time_text(load)} on {name}", "dim", err=True)
