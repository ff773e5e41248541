"""``zoo list``: the presets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from cli.terminal.option import AsJson, option
from cli.terminal.option_groups import SEARCH
from zoo.core.units import parameter_text

if TYPE_CHECKING:
    from specs.language.catalog import Preset


@dataclass(frozen=True)
class SearchOptions:
    """The options of ``zoo list``."""

    architecture: Annotated[
        str | None,
        option(
            "NAME",
            "List only this architecture: encoder, decoder, encoder-decoder, dual-encoder or vision-language.",
            SEARCH,
        ),
    ] = None
    least: Annotated[
        str | None, option("SIZE", "At least this many parameters, such as 500m.", SEARCH, "--min")
    ] = None
    most: Annotated[
        str | None, option("SIZE", "At most this many parameters, such as 1b.", SEARCH, "--max")
    ] = None
    since: Annotated[int | None, option("YEAR", "Published in this year or later.", SEARCH)] = None
    until: Annotated[int | None, option("YEAR", "Published in this year or before.", SEARCH)] = None

    def matches(self, words: Sequence[str]) -> list[Preset]:
        """The presets that match all words and options.  Raises :class:`specs.base.errors.UserError` if none does."""
        from specs.base.errors import UserError
        from specs.base.suggest import nearest, suggestion
        from specs.language.catalog import ARCHITECTURES, presets
        from specs.language.preset_files import preset_names

        if self.architecture is not None and self.architecture not in ARCHITECTURES:
            raise UserError(
                f"--architecture {self.architecture!r} is unknown\n  {suggestion(self.architecture, ARCHITECTURES)}"
            )
        matches = presets(
            *words,
            architecture=self.architecture,
            min_parameters=_count(self.least, "--min"),
            max_parameters=_count(self.most, "--max"),
            since=self.since,
            until=self.until,
        )
        if matches:
            return [*matches]
        if not words:
            raise UserError("No preset matches\n  Leave out an option.")
        text = " ".join(words)
        near = nearest(text, preset_names())
        remedy = (
            "Use fewer or other words; zoo list shows all presets."
            if near is None
            else f"Did you mean {near!r}?"
        )
        raise UserError(f"No preset matches {text!r}\n  {remedy}")


def list_presets(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="Words of names, summaries, sources, features, tasks or hub repositories, or a name with * and ?; all have to match.",
            metavar="WORD",
            show_default=False,
        ),
    ] = None,
    *,
    options: SearchOptions,
    as_json: AsJson = False,
) -> None:
    """List the presets that match all words and options.

    The active parameters of mixtures of experts stand in parentheses, the hub repository of the weights, where it is known,
    after the summary.

    \b
    Examples:
      zoo list
      zoo list llama 3
      zoo list translation
      zoo list ibm-granite
      zoo list moe --max 30b --since 2025
      zoo list 'gpt*' --json
    """
    from dataclasses import asdict

    from cli.terminal.render import Column, paged, print_json, print_table, say
    from cli.terminal.screen import Screen

    matches = options.matches(words or ())
    if as_json:
        print_json([asdict(preset) for preset in matches])
        return
    columns = [
        Column("name", pinned=True),
        Column("parameters", right=True),
        Column("year", right=True),
        Column("summary", prose=16),
    ]
    with paged():
        print_table(columns, (_row(preset) for preset in matches))
    say()
    first = matches[0].name
    say("1 preset" if len(matches) == 1 else f"{len(matches)} presets")
    hub = matches[0].hub
    Screen().next(
        (["build", first], "count, test and export it"),
        (["new", "my-model", "--like", first], "start from a copy"),
        *([(["export", hub], "with trained weights")] if hub else []),
    )


def _row(preset: Preset) -> tuple[str, ...]:
    count = "" if preset.parameters is None else parameter_text(preset.parameters)
    if preset.active_parameters is not None:
        count += f" ({parameter_text(preset.active_parameters)})"
    summary = f"{preset.summary}; {preset.hub}" if preset.hub else preset.summary
    return (preset.name, count, str(preset.year or ""), summary)


def _count(text: str | None, option: str) -> float | None:
    """A number of parameters, such as 1.5b."""
    import re

    from specs.base.errors import UserError

    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmbt]?)", text.casefold())
    if match is None:
        raise UserError(
            f"{option} {text!r} is no number of parameters\n  Write it as in {option} 500m or {option} 1.5b."
        )
    return float(match[1]) * {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}[match[2]]
