"""``zoo gallery``: one page with the drawings, figures and family tree of all presets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.terminal.option import AsJson, option
from cli.terminal.option_groups import OUTPUT


def gallery(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]...", help="Only presets that match all words, as zoo list finds them."
        ),
    ] = None,
    output: Annotated[Path, option("FILE", "The page to write.", OUTPUT, "--output", "-o")] = Path(
        "gallery.html"
    ),
    as_json: AsJson = False,
) -> None:
    """Write a page of all presets: their drawings, exact figures and family tree.

    One HTML file that works offline: cards to search, filter and sort, two models side by side with the differences of
    their specs and costs, a tree that shows how architectures grew from one another, and how to build each model. If the
    page exists, cards that did not change are taken from it.

    Exit status: 0 done, 2 the input was wrong.

    \b
    Examples:
      zoo gallery
      zoo gallery llama -o llamas.html
      zoo gallery moe --json
    """
    from time import perf_counter

    from cli.options.files import check_outputs, write_own
    from cli.terminal.progress import counted_progress
    from cli.terminal.render import print_json, say
    from specs.base.errors import UserError
    from specs.language.catalog import presets

    check_outputs([output], [".html"])
    chosen = presets(*(words or ()))
    if not chosen:
        raise UserError(f"No preset matches {' '.join(words or ())!r}.\n  Run zoo list to see all presets.")
    earlier = output.read_text("utf-8", errors="replace") if output.is_file() else ""
    from zoo.core.units import byte_text, time_text
    from zoo.pages.gallery import gallery_page

    started = perf_counter()
    with counted_progress("cards", quiet=as_json) as progress:
        text = gallery_page(chosen, earlier, progress)
    write_own(output, text.encode(), ".html")
    size = output.stat().st_size
    if as_json:
        print_json({"page": str(output), "presets": [preset.name for preset in chosen], "bytes": size})
        return
    count = f"{len(chosen):,} preset{'' if len(chosen) == 1 else 's'}"
    say(f"{output}: {count}, {byte_text(size)}, in {time_text(perf_counter() - started)}.")
    say("Open it in a browser; it needs no server.")
