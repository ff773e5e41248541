"""``zoo cache``: what is in the cache of artefacts, and making room in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cli.terminal.option import option, switch
from cli.terminal.option_groups import ACTION
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from exporters.making.cache import CacheEntry

_LISTED = 8


@dataclass(frozen=True)
class CacheOptions:
    """The options of ``zoo cache``."""

    prune: Annotated[
        bool, switch("--prune", "Remove the least recently used artefacts down to the limit.", ACTION)
    ] = False
    limit: Annotated[
        str | None,
        option(
            "SIZE",
            "Size to prune to, such as 5GB; 0B empties the cache.  [default: ZOO_CACHE_LIMIT, or 20GB]",
            ACTION,
            "--limit",
        ),
    ] = None
    days: Annotated[
        float | None,
        option("DAYS", "Prune artefacts not used for this long, too.", ACTION, "--unused-for", min=0),
    ] = None


def cache(options: CacheOptions, screen: Screen) -> None:
    """List the artefacts in the cache of zoo make, or prune it.

    The cache is in ZOO_CACHE_DIR, or ~/.cache/zoo. Pruning leaves output directories as they are.

    \b
    Examples:
      zoo cache
      zoo cache --prune --limit 5GB
      zoo cache --prune --unused-for 30
    """
    import time

    from cli.terminal.render import print_json
    from exporters.making.cache import Cache
    from specs.base.errors import UserError
    from zoo.core.units import byte_text

    if not options.prune and (options.limit is not None or options.days is not None):
        raise UserError("--limit and --unused-for apply only to pruning.\n  Pass --prune, too.")
    most = _most(options.limit)
    builds = Cache.default()
    removed = (
        builds.prune(most, None if options.days is None else time.time() - options.days * 86400)
        if options.prune
        else []
    )
    entries = removed if options.prune else builds.entries()
    size = sum(entry.size for entry in entries)
    if screen.as_json:
        print_json(
            {
                "directory": str(builds.root),
                "limit": most,
                "removed" if options.prune else "artefacts": [
                    {"key": item.key, "size": item.size, "used": item.used, "title": item.title}
                    for item in entries
                ],
            }
        )
        return
    what = f"{len(entries):,} artefact{'' if len(entries) == 1 else 's'}, {byte_text(size)}"
    screen.title(str(builds.root), "", f"{what}, limit {byte_text(most)}")
    if entries and not screen.silent:
        _print_entries(screen, entries)
    screen.done(f"{what} removed" if options.prune else f"{what} found")
    if entries and not options.prune:
        screen.next((["cache", "--prune", "--unused-for", "30"], "remove what was not used for 30 days"))


def _most(limit: str | None) -> int:
    """The bytes to prune to."""
    from exporters.making.cache import cache_limit
    from specs.base.errors import UserError
    from specs.files.zoo_file import parse_size

    try:
        return cache_limit() if limit is None else parse_size(limit)
    except ValueError:
        raise UserError(
            f"--limit must be a size: a number and B, KB, MB, GB or TB.\n  value: {limit!r}\n  Pass a size such as 5GB."
        ) from None


def _print_entries(screen: Screen, entries: Sequence[CacheEntry]) -> None:
    """Print the artefacts, without ``--verbose`` those used last."""
    import time

    from cli.terminal.render import Column, print_table
    from cli.terminal.screen import screen_width
    from zoo.core.units import byte_text

    shown = entries if screen.tables else sorted(entries, key=lambda item: -item.used)[:_LISTED]
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
