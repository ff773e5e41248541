"""The interface of all remotes, independent of their protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from exporters.remotes.artefact import Artefact, git_digest
from zoo.core.progress import Progress
from zoo.record.records import FileRecord

State = Literal["new", "same", "changed", "removed"]


@dataclass(frozen=True)
class RemoteFile:
    """A file at a remote: its size and SHA-256, or ``git``, git's object id, if the remote knows only that."""

    size: int
    sha256: str | None = None
    git: str | None = None

    def holds(self, path: Path, record: FileRecord) -> bool:
        """Return whether it has the contents of a local file."""
        if self.size != record.size:
            return False
        return self.sha256 == record.sha256 if self.sha256 is not None else self.git == git_digest(path)


@dataclass(frozen=True)
class FileChange:
    """The change that publishing makes to a file: its ``state`` relative to the remote, and whether its bytes are sent."""

    name: str
    size: int
    state: State
    sent: bool


class Remote(Protocol):
    """A location for one artefact.

    An ``exclusive`` one holds nothing but the artefact; otherwise it may hold other files.
    """

    exclusive: bool

    def __str__(self) -> str:
        """Return the address as the user gave it."""
        ...

    def listing(self) -> Mapping[str, RemoteFile]:
        """Return the files by path; empty if nothing is published. Raises :class:`specs.base.errors.UserError`."""
        ...

    def has_content(self, record: FileRecord) -> bool:
        """Return whether the remote already has contents, published or from an interrupted push."""
        ...

    def fetch(self, name: str, target: Path, progress: Progress) -> None:
        """Write a file of the listing to a new path.  Raises :class:`specs.base.errors.UserError`."""
        ...

    def send(self, artefact: Artefact, changes: Sequence[FileChange], progress: Progress) -> str:
        """Make the changes atomically; return the address of the published artefact."""
        ...
