"""A repository on the Hugging Face hub as a remote, through the hub's own library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from exporters.remotes.artefact import Artefact
from exporters.remotes.copying import copy_file
from exporters.remotes.remote import FileChange, RemoteFile
from zoo.core.progress import Progress, Stage
from zoo.record.records import FileRecord
from zoo.weights.hub import PUBLISHING, explained

MAIN = "main"


class HubRepository:
    """A branch of an existing model repository; repositories are created, public or private, on the hub."""

    exclusive = False

    def __init__(self, repository: str, branch: str | None = None) -> None:
        self._repository, self._branch = repository, branch
        self._commit: str | None = None

    def __str__(self) -> str:
        return f"hf://{self._repository}" + (f"@{self._branch}" if self._branch else "")

    def listing(self) -> Mapping[str, RemoteFile]:
        """Return the files of the branch; empty if it does not exist.

        Raises :class:`zoo.weights.hub.HubError` if the repository does not exist or cannot be read.
        """
        with explained(self._repository, self._branch):
            from huggingface_hub import HfApi
            from huggingface_hub.errors import RevisionNotFoundError

            api = HfApi()
            try:
                self._commit = api.model_info(self._repository, revision=self._branch).sha
            except RevisionNotFoundError:
                self._commit = None
                return {}
            tree = api.list_repo_tree(self._repository, recursive=True, revision=self._commit)
            return {file.path: _stored(file) for file in tree if hasattr(file, "blob_id")}

    def has_content(self, record: FileRecord) -> bool:
        """Return False, as unknown: the hub skips contents that it already has when they are sent."""
        return False

    def fetch(self, name: str, target: Path, progress: Progress) -> None:
        """Copy a file from the library's cache, which downloads it and resumes interrupted downloads."""
        with explained(self._repository, self._branch):
            from huggingface_hub import hf_hub_download
            from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined, unused-ignore]

            disable_progress_bars()
            progress(Stage(f"fetch {name}"))
            cached = hf_hub_download(self._repository, name, revision=self._commit)
        copy_file(Path(cached), target, progress)

    def send(self, artefact: Artefact, changes: Sequence[FileChange], progress: Progress) -> str:
        """Make one commit and return its address.

        It fails if another commit was made since the listing. Contents from an interrupted push stay on the hub and are
        not sent again.
        """
        with explained(self._repository, self._branch, PUBLISHING):
            from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
            from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined, unused-ignore]

            disable_progress_bars()
            api = HfApi()
            parent = self._commit or self._new_branch(api)
            operations: list[Any] = []
            done, total = 0, sum(change.size for change in changes if change.sent)
            for change in changes:
                if change.state == "removed":
                    operations.append(CommitOperationDelete(change.name))
                elif change.state != "same":
                    progress(Stage(f"send {change.name}", done, total))
                    added = CommitOperationAdd(change.name, artefact.directory / change.name)
                    api.preupload_lfs_files(
                        self._repository, [added], revision=self._branch, free_memory=False
                    )
                    operations.append(added)
                    done += change.size
            progress(Stage("commit"))
            committed = api.create_commit(
                self._repository,
                operations,
                commit_message=f"Publish {artefact.title}",
                revision=self._branch or MAIN,
                parent_commit=parent,
            )
            return str(committed.commit_url)

    def _new_branch(self, api: Any) -> str:
        """Create the branch from the first commit, which has no files of other exports."""
        first = str(api.list_repo_commits(self._repository)[-1].commit_id)
        api.create_branch(self._repository, branch=self._branch, revision=first)
        return first


def _stored(file: Any) -> RemoteFile:
    if file.lfs is not None:
        return RemoteFile(file.lfs.size, sha256=file.lfs.sha256)
    return RemoteFile(file.size, git=file.blob_id)
