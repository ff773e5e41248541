"""How plans and their results are printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.terminal.render import Column, print_table, say, styled

if TYPE_CHECKING:
    from exporters.making.make import BuildResult
    from exporters.making.plan import MakePlan

_STYLES = {"current": "dim", "cached": "cyan", "build": "yellow", "failed": "bold red"}
_ACTIONS = {
    "current": "keep",
    "cached": "restore from the cache",
    "build": "build",
    "failed": "fail",
}


def print_plan(plan: MakePlan, *, checked: bool) -> None:
    """Print what is to be done for every artefact that is not current, and how many are."""
    stale = plan.unlocked if checked else plan.stale
    if stale:
        print_table(
            [Column("artefact", pinned=True), Column("action"), Column("reason", prose=30)],
            [
                (step.artefact.name, styled(_ACTIONS[step.state], _STYLES[step.state]), step.why)
                for step in stale
            ],
        )
        say()
    say(f"{len(plan.steps) - len(stale):,} of {_artefacts(len(plan.steps))} up to date.")


def print_made(plan: MakePlan, made: Sequence[BuildResult]) -> None:
    """Print what was done, and where the artefacts are."""
    from zoo.core.units import time_text

    if made:
        print_table(
            [
                Column("artefact", pinned=True),
                Column("result"),
                Column("time", right=True, rank=1),
                Column("reason", prose=30, rank=2),
            ],
            [
                (
                    result.step.artefact.name,
                    styled(result.state, "bold red" if result.state == "failed" else "green"),
                    time_text(result.seconds) if result.seconds else "",
                    result.step.why.partition("\n")[0],
                )
                for result in made
            ],
        )
        say()
    counts = Counter(result.state for result in made)
    current = len(plan.steps) - len(made)
    parts = [f"{count:,} {state}" for state, count in sorted(counts.items())]
    parts += [f"{current:,} already up to date"] if current else []
    say(f"{_artefacts(len(plan.steps))}: {', '.join(parts)}.")


def print_failures(made: Sequence[BuildResult]) -> None:
    """Print the errors of artefacts that could not be built, on standard error."""
    for result in made:
        if result.state == "failed":
            say(f"\n{result.step.artefact.name}: {result.error}", "red", err=True)


def _artefacts(count: int) -> str:
    return f"{count:,} artefact{'' if count == 1 else 's'}"
