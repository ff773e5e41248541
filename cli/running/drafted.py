"""Output of ``zoo run`` with a draft: the text, the accepted share, and a comparison with the target alone."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from cli.running.output import (
    RunContext,
    generation_data,
    print_continuations,
    tell_not_applied,
    token_printer,
)
from cli.running.timing import tell_generated
from cli.terminal.render import print_json, say

if TYPE_CHECKING:
    from exporters.runtime.exported import Exported
    from exporters.runtime.generation import Generation
    from exporters.runtime.speculative import DraftedGeneration
    from zoo.generation.sampling import Sampling


def print_drafted(
    shown: RunContext,
    draft: Exported,
    draft_tokens: int,
    sampling: Sampling,
    most: int,
    stop: Collection[int] | None,
) -> None:
    """Continue the prompts one by one with a draft; unless quiet, then without it, to compare speed and greedy tokens."""
    from exporters.runtime.speculative import (
        SpeculativeGenerator,
        first_difference,
        reason_for_difference,
    )

    generator = SpeculativeGenerator(shown.exported, draft, draft_tokens)
    tell_not_applied(shown, sampling)
    prompts: Any = shown.values
    done = generator.generate(prompts, most, sampling, stop=stop, tell=token_printer(shown))
    if not shown.as_json:
        print_continuations(shown, done)
    if shown.quiet and not shown.as_json:
        return
    alone = generator.without_draft(prompts, most, sampling, stop=stop)
    different = None if sampling.temperature else first_difference(done, alone)
    if shown.as_json:
        print_json({**generation_data(shown, generator, done), "draft": _data(draft, done, alone, different)})
        return
    if done.acceptance is not None:
        say(
            f"draft: {done.acceptance:.0%} of {done.proposed:,} proposed tokens accepted, {done.tokens_per_call:.2f} tokens per call "
            f"of {shown.exported.spec.name}",
            "dim",
            err=True,
        )
    without = alone.tokens_per_second
    beside = "" if without is None else f" ({without:,.1f} without the draft)"
    tell_generated(generator, done, most, quiet=False, beside=beside)
    if different is not None:
        say(
            f"Without the draft, token {different + 1} differs: {reason_for_difference(shown.exported)}.",
            "yellow",
            err=True,
        )


def _data(
    draft: Exported, done: DraftedGeneration, alone: Generation, different: int | None
) -> dict[str, Any]:
    """The draft's part as JSON data."""
    return {
        "name": draft.spec.name,
        "directory": str(draft.directory),
        "proposed": done.proposed,
        "accepted": done.accepted,
        "calls": done.calls,
        "tokens_per_call": done.tokens_per_call,
        "tokens_per_second_without": alone.tokens_per_second,
        "first_difference": different,
    }
