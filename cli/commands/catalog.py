"""``zoo catalog``: one page for all artefacts of a zoo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.terminal.option import option, switch
from cli.terminal.option_groups import OUTPUT
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from exporters.making.catalog import Catalog


_LISTED = 8
"""The largest number of changes that have a line each."""


def catalog(
    context: typer.Context,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE|DIR",
            help="A zoo file, or a directory with a zoo.yaml or with exports at any depth.  [default: .]",
        ),
    ] = None,
    output: Annotated[Path, option("FILE", "The page to write.", OUTPUT, "--output", "-o")] = Path(
        "catalog.html"
    ),
    digests: Annotated[
        bool,
        switch(
            "--digests/--no-digests",
            "Compare exported files with their recorded SHA-256.  [default: only with their sizes]",
        ),
    ] = False,
    *,
    screen: Screen,
) -> None:
    """Write a page that lists the artefacts of a zoo.

    One HTML file that works offline: a table to search, filter and sort, and for each artefact the drawing and costs of its
    model, the verification, quality figures, files with digests, and a program that loads it in its client. If the page
    exists, the new one also lists what was added, removed or changed since, and why.

    Exit status: 0 done, 1 an artefact is not built, damaged or changed since it was exported, 2 the input was wrong.

    \b
    Examples:
      zoo catalog
      zoo catalog models/zoo.yaml -o site/catalog.html
      zoo catalog build --digests
      zoo catalog build --json
    """
    from cli.options.given import typed
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json
    from specs.files.zoo_file import ZOO_FILE

    path = source or Path()
    if (path / ZOO_FILE).is_file():
        path = path / ZOO_FILE
    listed = _written(screen, path, output, digests=digests)
    passed = not listed.problems and all(entry.state != "changed" for entry in listed.entries)
    if screen.as_json:
        print_json({"page": str(output), "passed": passed, **listed.as_dict()})
    else:
        _print_summary(screen, listed)
        screen.done(f"{output} is written")
        screen.next(
            *([] if digests else [(typed(context, "--digests"), "compare every file with its digest")]),
            *([(["make", str(path)], "build what is missing")] if listed.problems and path.is_file() else []),
        )
        _print_failures(screen, listed)
    if not passed:
        raise typer.Exit(FAILED)


def _written(screen: Screen, path: Path, output: Path, *, digests: bool) -> Catalog:
    """The artefacts at a path, of which a page is written."""
    from datetime import UTC, datetime

    from cli.options.files import check_outputs, write_own

    check_outputs([output], [".html"])
    earlier = _earlier(output)
    from exporters.making.catalog import catalog as catalog_of

    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    with screen.progress() as progress:
        listed = catalog_of(path, earlier, now, contents=digests, progress=progress)
        text = listed.page(output.absolute().parent, progress)
    write_own(output, text.encode(), ".html")
    return listed


def _earlier(output: Path) -> Any:
    """The data of the page that will be replaced; None if there is no page."""
    from specs.base.errors import UserError
    from zoo.catalog.changes import FORMAT
    from zoo.pages.catalog_page import data_in

    if not output.is_file() or not output.stat().st_size:
        return None
    data = data_in(output.read_text("utf-8", errors="replace"))
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UserError(
            f"{output} is not a catalog of this version of zoo.\n  Give another --output, or remove it."
        )
    return data


def _print_summary(screen: Screen, listed: Catalog) -> None:
    models = len(listed.data["specs"])
    screen.title(listed.title, f"{_counted(len(listed.entries), 'artefact')} of {_counted(models, 'model')}")
    lines = [f"{name}: {why}" for name, why in (listed.changed.lines() if listed.changed else ())]
    if screen.tables:
        from cli.terminal.render import say

        for line in lines:
            say(line)
    elif lines:
        more = [f"\u2026 and {len(lines) - _LISTED:,} more, which -v lists"] if len(lines) > _LISTED else []
        screen.row("changed", *lines[:_LISTED], *more)


def _print_failures(screen: Screen, listed: Catalog) -> None:
    """Print the artefacts that are missing, damaged or changed, once per cause."""
    causes: dict[str, list[str]] = {}
    for problem in listed.problems:
        causes.setdefault(problem.why, []).append(problem.name)
    for entry in listed.entries:
        if entry.state == "changed":
            causes.setdefault(str(entry.integrity.changes[0]), []).append(entry.name)
    if causes:
        count = _counted(sum(map(len, causes.values())), "artefact")
        screen.failed(
            f"{count} not as built:", [(f"{', '.join(names)}: {why}", "") for why, names in causes.items()]
        )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
