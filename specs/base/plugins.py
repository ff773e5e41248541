"""The installed plugins: packages that add kinds through an entry-point group."""

from __future__ import annotations

from importlib.metadata import EntryPoints, entry_points

ENTRY_POINT_GROUP = "zoo.components"


def plugin_entries() -> EntryPoints:
    """The entry points of all plugins, none of them imported."""
    return entry_points(group=ENTRY_POINT_GROUP)
