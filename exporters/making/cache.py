"""The content-addressed cache of artefacts: one directory for each key, shared by all zoos of a user.

Output directories share their files with the cache by hard links where the file system supports them, so that an artefact
in both takes up space once.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specs.errors import UserError
from specs.zoo_file import parse_size
from zoo.destination import MANIFEST, replacing
from zoo.files.card import CARD
from zoo.files.carrying import remove_tree
from zoo.files.linking import link_file
from zoo.files.ownership import BUILD
from zoo.integrity import check_integrity
from zoo.manifest import read_record

LIMIT = "20GB"
"""The default size limit."""

VARIABLE, LIMIT_VARIABLE = "ZOO_CACHE_DIR", "ZOO_CACHE_LIMIT"


@dataclass(frozen=True)
class CacheEntry:
    """An artefact in the cache: its key, its size in bytes, its last use (seconds since 1970) and its title."""

    key: str
    size: int
    used: float
    title: str


@dataclass(frozen=True)
class Cache:
    """The cache in a directory."""

    root: Path

    @staticmethod
    def default() -> Cache:
        """The cache that ``ZOO_CACHE_DIR`` names, or else ``zoo`` in the user's cache directory."""
        if named := os.environ.get(VARIABLE):
            return Cache(Path(named))
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Cache(Path(home) / "zoo")

    @property
    def memory(self) -> Path:
        """The file that remembers digests."""
        return self.root / "digests.json"

    def entry(self, key: str) -> Path:
        """Return the directory of a key, which need not exist."""
        return self.root / "artefacts" / key[:2] / key

    def has(self, key: str) -> bool:
        """Return whether the cache has the complete artefact of a key."""
        return built_with(self.entry(key)).get("key") == key

    def place(self, key: str, directory: Path) -> bool:
        """Put an artefact into its output directory in one step; False where the cached files have changed.

        Changed entries are removed.
        """
        entry = self.entry(key)
        record = read_record(entry)
        if record.build is None or not check_integrity(entry, record.manifest, contents=True).intact:
            self.remove(key)
            return False
        os.utime(entry)
        with replacing(directory) as new:
            for source in sorted(path for path in entry.rglob("*") if path.is_file()):
                target = new / source.relative_to(entry)
                if source.name == CARD:  # copied, as users edit it
                    shutil.copy2(source, target)
                else:
                    link_file(source, target)
        return True

    def entries(self) -> list[CacheEntry]:
        """Return the entries of the cache, least recently used first."""
        return sorted(self._entries(), key=lambda entry: entry.used)

    def _entries(self) -> Iterator[CacheEntry]:
        for path in (self.root / "artefacts").glob("??/" + "?" * 64):
            try:
                size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
                used = path.stat().st_mtime
            except FileNotFoundError:  # removed by another process meanwhile
                continue
            yield CacheEntry(path.name, size, used, _title(path))

    def remove(self, key: str) -> None:
        """Remove an artefact from the cache; output directories keep their files."""
        entry = self.entry(key)
        if entry.is_dir():
            gone = entry.with_name(f".{key}.removed-{os.getpid()}")
            entry.rename(gone)
            remove_tree(gone)

    def prune(self, limit: int, unused_since: float | None = None) -> list[CacheEntry]:
        """Remove the least recently used artefacts until the cache has at most ``limit`` bytes, and those unused since a
        given time; return the removed ones."""
        found = self.entries()
        total = sum(entry.size for entry in found)
        removed = []
        for entry in found:
            if total > limit or (unused_since is not None and entry.used < unused_since):
                self.remove(entry.key)
                removed.append(entry)
                total -= entry.size
        return removed


def cache_limit() -> int:
    """Return the size limit in bytes: ``ZOO_CACHE_LIMIT``, or the default.

    Raises :class:`specs.errors.UserError` for an invalid size.
    """
    text = os.environ.get(LIMIT_VARIABLE, LIMIT)
    try:
        return parse_size(text)
    except ValueError:
        raise UserError(
            f"{LIMIT_VARIABLE} must be a size: a number and B, KB, MB, GB or TB.\n"
            f"  value: {text!r}\n  Set it to {LIMIT}, for example."
        ) from None


def built_with(directory: Path) -> dict[str, Any]:
    """Return the recorded inputs of the export in a directory; empty without an export, or where no zoo file made it."""
    try:
        data = json.loads((directory / BUILD).read_bytes())
    except (OSError, ValueError):
        return {}
    inputs = data.get("made_from") if isinstance(data, dict) else None
    return inputs if isinstance(inputs, dict) and (directory / MANIFEST).is_file() else {}


def _title(entry: Path) -> str:
    """The model, the target and the precision of a cached artefact."""
    try:
        manifest = json.loads((entry / MANIFEST).read_bytes())
        name = next(
            line for line in (entry / "spec.yaml").read_text("utf-8").splitlines() if line.startswith("name:")
        )
        return f"{name.partition(':')[2].strip()} {manifest['target']} {manifest['precision']}"
    except (OSError, ValueError, KeyError, StopIteration):
        return "damaged"
