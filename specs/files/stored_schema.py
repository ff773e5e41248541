"""The JSON Schema of the built-in kinds, stored so that printing it builds none of their classes.

A wheel has it.  A checkout stores what it generates beside Python's bytecode, and like that for as long as no source is newer.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import specs
from specs.base.plugins import plugin_entries

SOURCES = Path(__file__).resolve().parents[1]
STORED = SOURCES / "zoo.schema.json"
"""The schema in an installed wheel, which ``setup.py`` writes; a checkout has none."""

CACHE = "__pycache__"


def spec_schema() -> dict[str, Any]:
    """The schema of a spec file: the stored one, or a generated one if plugins add kinds or sources have changed."""
    if plugin_entries():
        return _generated()
    if STORED.exists():
        return _read(STORED)
    stored = SOURCES / CACHE / f"zoo.schema.pydantic-{version('pydantic')}.json"
    with contextlib.suppress(OSError, ValueError):
        if stored.stat().st_mtime_ns > max(_changes(SOURCES)):
            return _read(stored)
    schema = _generated()
    if _is_built_in():
        with contextlib.suppress(OSError):  # a checkout that cannot be written
            _store(schema, stored)
    return schema


def _generated() -> dict[str, Any]:
    from specs.files.schema import json_schema

    return json_schema()


def _is_built_in() -> bool:
    """Whether all registered kinds are of this package."""
    from specs.base import registry

    kinds = (kind for slot in registry.slots() for kind in registry.kinds(slot).values())
    return all(kind.spec.__module__.startswith(f"{specs.__name__}.") for kind in kinds)


def _read(path: Path) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return schema


def _store(schema: dict[str, Any], stored: Path) -> None:
    """Write the schema of the sources as they were when this process began to read them."""
    stored.parent.mkdir(exist_ok=True)
    new = stored.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(schema, ensure_ascii=False), "utf-8")
    os.utime(new, ns=(specs.READ_SINCE, specs.READ_SINCE))
    new.replace(stored)


def _changes(folder: Path) -> Iterator[int]:
    """The times at which files of a folder were changed, and added or removed."""
    for directory, folders, files in os.walk(folder):
        if CACHE in folders:
            folders.remove(CACHE)
        yield os.stat(directory).st_mtime_ns
        yield from (os.stat(os.path.join(directory, file)).st_mtime_ns for file in files)
