"""The installed plugins: packages that add kinds or families through entry points."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, EntryPoint, EntryPoints
from types import ModuleType

from specs.base.errors import PluginError

COMPONENTS, FAMILIES = "zoo.components", "zoo.families"
"""The groups of entry points: modules that register kinds, and modules with the family of a model_type."""

_broken: dict[tuple[str, str], PluginError] = {}


@functools.cache
def _all_entries() -> EntryPoints:
    """The entry points of all packages that have some of zoo's groups; the first of two packages of one name counts.

    Those of other packages, which are most of those installed, are not parsed.
    """
    by_name = {package.name: package for package in reversed([*map(Distribution.at, _extending())])}
    return EntryPoints(entry for package in by_name.values() for entry in package.entry_points)


def _extending() -> Iterator[str]:
    """The folders of metadata of the packages that have some of zoo's groups.

    Every command reads a spec, and opening all packages with importlib.metadata takes three times as long.
    """
    for directory in sys.path:
        with contextlib.suppress(OSError):  # the path may name archives, and folders that do not exist
            for name in os.listdir(directory or "."):
                if name.endswith((".dist-info", ".egg-info")):
                    folder = os.path.join(directory, name)
                    with contextlib.suppress(OSError), open(f"{folder}/entry_points.txt", "rb") as file:
                        if b"[zoo." in file.read():
                            yield folder


def plugin_entries(group: str = COMPONENTS) -> EntryPoints:
    """The entry points of all plugins in a group, none of them imported."""
    return _all_entries().select(group=group)


def load_entry(entry: EntryPoint) -> ModuleType:
    """Import the module of an entry point. Raises :class:`PluginError` that names the plugin."""
    try:
        return import_foreign(entry.value)
    except PluginError as error:
        raise broken(entry, f"cannot be loaded: {error}") from error


def broken(entry: EntryPoint, fault: str) -> PluginError:
    """The error of a plugin that does not work, kept for :func:`broken_plugins`."""
    distribution = entry.dist.name if entry.dist else "an unnamed distribution"
    error = PluginError(f"plugin '{entry.name}' of {distribution} ({entry.value}) {fault}")
    return _broken.setdefault((entry.group, entry.name), error)


def import_foreign(name: str) -> ModuleType:
    """Import a module of a plugin, with its output redirected to stderr.

    Raises :class:`PluginError` for any exception, including ``exit()``; Ctrl-C and termination signals propagate.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except BaseException as error:
        if isinstance(error, PluginError):
            raise
        ends = isinstance(error, SystemExit) and type(error) is not SystemExit
        if ends or isinstance(error, KeyboardInterrupt | MemoryError):
            raise
        fault = (
            f"the import exits with {error.code!r}"
            if isinstance(error, SystemExit)
            else f"{type(error).__name__}: {error}"
        )
        raise PluginError(fault) from error


def broken_plugins() -> list[PluginError]:
    """The error of every plugin that does not work."""
    return [*_broken.values()]
