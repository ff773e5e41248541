"""The content-addressed cache of artefacts: one directory for each key, shared by all zoos of a user.

Output directories share their files with the cache by hard links where the file system supports them, so that an artefact
in both takes up space once.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specs.base.errors import UserError
from specs.files.zoo_file import parse_size
from zoo.files.card import CARD, has_own_card
from zoo.files.destination import MANIFEST, replacing
from zoo.files.json_values import read_object
from zoo.files.linking import link_file
from zoo.files.ownership import BUILD, entries
from zoo.files.reading import UnsafeFileError, copy_regular, read_regular
from zoo.files.workplace import SCRAP, clear_left_behind, workplace
from zoo.record.integrity import check_integrity
from zoo.record.manifest import ExportRecord, read_manifest, read_record

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

    def place(self, key: str, directory: Path, export: str | None = None) -> bool:
        """Put an artefact into its output directory in one step; False where the cached files have changed.

        ``export`` is the SHA-256 that its export.json must have, where that is known. Changed entries are removed. Only the
        artefact's own files are placed. Raises :class:`specs.base.errors.UserError` where the directory cannot be replaced.
        """
        entry = self.entry(key)
        try:
            record = _read(entry)
            if record.build is None or export not in (None, record.build.export):
                raise _ChangedError
            with contextlib.suppress(OSError):  # a cache that cannot be written can be used
                os.utime(entry)
            with replacing(directory) as new:
                _copy(record, new)
        except _ChangedError:
            self.remove(key)
            return False
        return True

    def check_writable(self) -> None:
        """Raise :class:`specs.base.errors.UserError` where artefacts cannot be added."""
        folder = self.root / "artefacts"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise UserError(
                f"The cache {self.root} cannot be written: {error.strerror or error}.\n"
                f"  Set {VARIABLE} to a directory that can be written."
            ) from None

    def entries(self) -> list[CacheEntry]:
        """Return the entries of the cache, least recently used first."""
        return sorted(self._entries(), key=lambda entry: entry.used)

    def _entries(self) -> Iterator[CacheEntry]:
        for path in (self.root / "artefacts").glob("??/" + "?" * 64):
            try:
                size = sum(entry.stat(follow_symlinks=False).st_size for _, entry in entries(path))
                used = path.stat().st_mtime
            except (FileNotFoundError, NotADirectoryError):  # removed by another process meanwhile
                continue
            yield CacheEntry(path.name, size, used, _title(path))

    def remove(self, key: str) -> None:
        """Remove an artefact from the cache; output directories keep their files."""
        entry = self.entry(key)
        if entry.is_symlink():
            entry.unlink()
        elif entry.is_dir():
            try:
                with workplace(entry) as temporary:
                    entry.rename(temporary / f"{SCRAP}-removed")
            except FileNotFoundError:  # another process has removed it
                return
            except OSError as error:
                raise UserError(
                    f"{entry} cannot be removed: {error.strerror or error}.\n  Remove it, or set {VARIABLE} to another directory."
                ) from None

    def prune(self, limit: int, unused_since: float | None = None) -> list[CacheEntry]:
        """Remove the least recently used artefacts until the cache has at most ``limit`` bytes, and those unused since a
        given time; return the removed ones."""
        for left in (self.root / "artefacts").glob("??/.*.partial-*"):
            with contextlib.suppress(OSError):
                clear_left_behind(left.with_name(left.name[1:].partition(".")[0]))
        cached = self.entries()
        total = sum(entry.size for entry in cached)
        removed = []
        for entry in cached:
            if total > limit or (unused_since is not None and entry.used < unused_since):
                self.remove(entry.key)
                removed.append(entry)
                total -= entry.size
        return removed


class _ChangedError(UserError):
    """A cached artefact is not what it was, or not the wanted one."""


def _read(entry: Path) -> ExportRecord:
    try:
        return read_record(entry)
    except UserError:
        raise _ChangedError from None


def _copy(record: ExportRecord, new: Path) -> None:
    """Give the files of a cached artefact a second name in a new directory, where they are compared with their digests.

    Raises :class:`_ChangedError`.
    """
    entry = record.directory
    try:
        for name in (*record.files, MANIFEST, BUILD):
            link_file(entry / name, new / name)
        if has_own_card(entry):  # copied, as users edit it
            copy_regular(entry / CARD, new / CARD, entry)
        placed = read_record(new)
        intact = check_integrity(placed, contents=True).intact
    except (FileNotFoundError, NotADirectoryError, UnsafeFileError, UserError):
        raise _ChangedError from None
    if not intact or placed.build != record.build:
        raise _ChangedError


def cache_limit() -> int:
    """Return the size limit in bytes: ``ZOO_CACHE_LIMIT``, or the default.

    Raises :class:`specs.base.errors.UserError` for an invalid size.
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
        inputs = read_object(directory / BUILD, UserError, directory).get("made_from")
    except UserError:
        return {}
    return inputs if isinstance(inputs, dict) and os.path.lexists(directory / MANIFEST) else {}


def _title(entry: Path) -> str:
    """The model, the target and the precision of a cached artefact."""
    try:
        manifest = read_manifest(entry)
        lines = read_regular(entry / "spec.yaml", entry).decode().splitlines()
        name = next(line for line in lines if line.startswith("name:"))
        return f"{name.partition(':')[2].strip()} {manifest.target} {manifest.precision}"
    except (OSError, ValueError, UserError, StopIteration):
        return "damaged"
