"""A directory as a remote: a file server, a mounted bucket, another disk."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from exporters.remotes.artefact import Artefact
from exporters.remotes.copying import copy_file
from exporters.remotes.remote import FileChange, RemoteFile
from specs.base.errors import UserError
from zoo.core.progress import Progress
from zoo.files.destination import MANIFEST, check_replaceable, replacing
from zoo.files.linking import link_file
from zoo.files.ownership import BESIDE, own_files
from zoo.files.reading import check_regular, unreadable
from zoo.record.integrity import file_record
from zoo.record.records import FileRecord


class Folder:
    """A directory that holds one artefact, and possibly the user's own files."""

    exclusive = False

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __str__(self) -> str:
        return str(self.directory)

    def listing(self) -> Mapping[str, RemoteFile]:
        """Return the files of the export in the directory. Raises :class:`zoo.files.destination.DestinationError` for other directories."""
        check_replaceable(self.directory)
        own = own_files(self.directory, MANIFEST) if self.directory.is_dir() else None
        for path in (self.directory / name for name in BESIDE[MANIFEST]):
            try:
                check_regular(path, self.directory)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise UserError(unreadable(path, error)) from None
        places = {name: self.directory / name for name in sorted(own or ())}
        records = {
            name: file_record(path, self.directory) for name, path in places.items() if os.path.lexists(path)
        }
        return {name: RemoteFile(record.size, record.sha256) for name, record in records.items()}

    def has_content(self, record: FileRecord) -> bool:
        """Return False: an interrupted push leaves no files."""
        return False

    def fetch(self, name: str, target: Path, progress: Progress) -> None:
        copy_file(self.directory / name, target, progress, within=self.directory)

    def send(self, artefact: Artefact, changes: Sequence[FileChange], progress: Progress) -> str:
        """Replace the directory by a new one with all files, in one step."""
        with replacing(self.directory) as new:
            for change in changes:
                if change.state == "same":
                    link_file(self.directory / change.name, new / change.name)
                elif change.state != "removed":
                    source, record = artefact.directory / change.name, artefact.files[change.name]
                    copy_file(
                        source,
                        new / change.name,
                        progress,
                        within=artefact.directory,
                        size=record.size,
                        sha256=record.sha256,
                    )
        return str(self.directory)
