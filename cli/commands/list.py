"""``zoo list``: the presets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.options import AsJson
from zoo.core.units import parameter_text

if TYPE_CHECKING:
    from specs.language.catalog import Preset


def list_presets(
    pattern: Annotated[
        str,
        typer.Argument(
            help="Name with the wildcards * and ?, such as 'gpt*', or a word of the summary or source.",
            metavar="PATTERN",
        ),
    ] = "*",
    architecture: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="List only this architecture: encoder, decoder or encoder-decoder."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the presets with their parameter counts, and for mixtures of experts those active per token.

    \b
    Examples:
      zoo list
      zoo list 'gpt*'
      zoo list multilingual
      zoo list --architecture encoder-decoder --json
    """
    from dataclasses import asdict
    from fnmatch import fnmatchcase

    from cli.terminal.render import Column, print_json, print_table
    from specs.base.errors import UserError
    from specs.base.suggest import suggestion
    from specs.language.catalog import presets

    every = presets()
    wanted = pattern.casefold()
    matching = [preset for preset in every if fnmatchcase(preset.name, wanted)]
    if not matching:  # search names, summaries and sources
        matching = [
            preset
            for preset in every
            if wanted in f"{preset.name} {preset.summary} {preset.source}".casefold()
        ]
    if not matching:
        raise UserError(
            f"No preset matches {pattern!r}\n  {suggestion(pattern, [preset.name for preset in every])}"
        )
    if architecture is not None:
        architectures = sorted({preset.architecture for preset in every})
        if architecture not in architectures:
            raise UserError(
                f"--architecture {architecture!r} is unknown\n  {suggestion(architecture, architectures)}"
            )
        matching = [preset for preset in matching if preset.architecture == architecture]
    if as_json:
        print_json([asdict(preset) for preset in matching])
        return
    routed = any(preset.active_parameters is not None for preset in matching)
    columns = [
        Column("name", pinned=True),
        Column("architecture", rank=1),
        Column("parameters", right=True),
        *([Column("active", right=True, rank=3)] if routed else []),
        Column("year", right=True, rank=2),
        Column("summary", prose=30),
    ]
    print_table(columns, (_row(preset, routed) for preset in matching))


def _row(preset: Preset, routed: bool) -> tuple[str, ...]:
    count = "" if preset.parameters is None else f"{preset.parameters:,}"
    active = "" if preset.active_parameters is None else parameter_text(preset.active_parameters)
    year = str(preset.year or "")
    return (preset.name, preset.architecture, count, *([active] if routed else []), year, preset.summary)
