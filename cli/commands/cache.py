"""``zoo cache``: what is in the cache of artefacts, and making room in it."""

from __future__ import annotations

from typing import Annotated

from cli.terminal.option import option, switch
from cli.terminal.option_groups import ACTION
from cli.terminal.screen import Screen

_LISTED = 8


def cache(
    prune: Annotated[
        bool, switch("--prune", "Remove the least recently used artefacts down to the limit.", ACTION)
    ] = False,
    limit: Annotated[
        str | None,
        option(
            "SIZE",
            "Size to prune to, such as 5GB; 0B empties the cache.  [default: ZOO_CACHE_LIMIT, or 20GB]",
            ACTION,
            "--limit",
        ),
    ] = None,
    days: Annotated[
        float | None,
        option("DAYS", "Prune artefacts not used for this long, too.", ACTION, "--unused-for", min=0),
    ] = None,
    *,
    screen: Screen,
) -> None:
    """List the artefacts in the cache of zoo make, or prune it.

    The cache is in ZOO_CACHE_DIR, or ~/.cache/zoo. Pruning leaves output directories as they are.

    \b
    Examples:
      zoo cache
      zoo cache --prune --limit 5GB
      zoo cache --prune --unused-for 30
    """
    import time

    from cli.terminal.render import Column, print_json, print_table
    from cli.terminal.screen import screen_width
    from exporters.making.cache import Cache, cache_limit
    from specs.base.errors import UserError
    from specs.files.zoo_file import parse_size
    from zoo.core.units import byte_text

    if not prune and (limit is not None or days is not None):
        raise UserError("--limit and --unused-for apply only to pruning.\n  Pass --prune, too.")
    try:
        most = cache_limit() if limit is None else parse_size(limit)
    except ValueError:
        raise UserError(
            f"--limit must be a size: a number and B, KB, MB, GB or TB.\n  value: {limit!r}\n  5GB would work."
        ) from None
    builds = Cache.default()
    removed = builds.prune(most, None if days is None else time.time() - days * 86400) if prune else []
    entries = removed if prune else builds.entries()
    size = sum(entry.size for entry in entries)
    if screen.as_json:
        print_json(
            {
                "directory": str(builds.root),
                "limit": most,
                "removed" if prune else "artefacts": [
                    {"key": item.key, "size": item.size, "used": item.used, "title": item.title}
                    for item in entries
                ],
            }
        )
        return
    what = f"{len(entries):,} artefact{'' if len(entries) == 1 else 's'}, {byte_text(size)}"
    screen.title(str(builds.root), "", f"{what}, limit {byte_text(most)}")
    shown = entries if screen.tables else sorted(entries, key=lambda item: -item.used)[:_LISTED]
    if entries and not screen.silent:
        print_table(
            [
                Column("key", pinned=True),
                Column("artefact"),
                Column("size", right=True),
                Column("last used", right=True, rank=1),
            ],
            [
                (
                    item.key[:12],
                    item.title,
                    byte_text(item.size),
                    time.strftime("%Y-%m-%d %H:%M", time.localtime(item.used)),
                )
                for item in shown
            ],
            None if screen.tables else screen_width(),
        )
    if len(shown) < len(entries):
        screen.row("", f"\u2026 and {len(entries) - len(shown):,} used before, which -v lists")
    screen.done(f"{what} removed" if prune else f"{what} found")
    if entries and not prune:
        screen.next((["cache", "--prune", "--unused-for", "30"], "remove what was not used for 30 days"))
