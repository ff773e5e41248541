"""``zoo list``: the presets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson

if TYPE_CHECKING:
    from specs.catalog import Preset


def list_presets(
    pattern: Annotated[
        str,
        typer.Argument(
            help="A name with * and ? as wildcards, such as 'gpt*', or a word of the summary or source.",
            metavar="PATTERN",
        ),
    ] = "*",
    architecture: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="encoder, decoder or encoder-decoder.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the presets.

    \b
    Examples:
      zoo list
      zoo list 'gpt*'
      zoo list multilingual
      zoo list --architecture encoder-decoder --json
    """
    from dataclasses import asdict
    from fnmatch import fnmatchcase

    from cli.render import Column, print_json, print_table
    from specs.catalog import presets
    from specs.errors import UserError
    from specs.suggest import did_you_mean

    every = presets()
    wanted = pattern.casefold()
    found = [preset for preset in every if fnmatchcase(preset.name, wanted)]
    if not found:  # part of the name, or a word of the summary or source, such as an author
        found = [
            preset
            for preset in every
            if wanted in f"{preset.name} {preset.summary} {preset.source}".casefold()
        ]
    if not found:
        raise UserError(
            f"no preset matches {pattern!r}: {did_you_mean(pattern, [preset.name for preset in every])}"
        )
    if architecture is not None:
        architectures = sorted({preset.architecture for preset in every})
        if architecture not in architectures:
            raise UserError(f"no architecture {architecture!r}: {did_you_mean(architecture, architectures)}")
        found = [preset for preset in found if preset.architecture == architecture]
    if as_json:
        print_json([asdict(preset) for preset in found])
        return
    columns = [
        Column("name", pinned=True),
        Column("architecture", rank=1),
        Column("parameters", right=True),
        Column("year", right=True, rank=2),
        Column("summary", prose=30),
    ]
    print_table(columns, map(_row, found))


def _row(preset: Preset) -> tuple[str, ...]:
    count = "" if preset.parameters is None else f"{preset.parameters:,}"
    return preset.name, preset.architecture, count, str(preset.year or ""), preset.summary
