"""``zoo.lock``: the commits of hub repositories and the digests of weights and artefacts, for version control."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from specs.base.errors import UserError
from zoo.files.json_values import read_object
from zoo.files.reading import read_regular
from zoo.files.whole import write_file

FORMAT = 1


@dataclass(frozen=True)
class Lock:
    """The inputs of a zoo's last build.

    ``repositories`` holds the commit of each hub repository by ``org/name@revision``, ``weights`` the digest of each
    model's weights, ``artefacts`` the key of each artefact and the SHA-256 of its export.json.
    """

    repositories: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, str] = field(default_factory=dict)
    artefacts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @staticmethod
    def read(path: Path) -> Lock:
        """Return the lock in a file; without a file, an empty one. Raises :class:`specs.base.errors.UserError` for a damaged one."""
        if not os.path.lexists(path):
            return Lock()
        try:
            data = read_object(path, UserError, path.parent)
        except UserError as error:
            raise UserError(f"{error.text.splitlines()[0]}\n  {_REMEDY}") from None
        if data.get("format") != FORMAT:
            raise UserError(f"{path} does not have format {FORMAT}.\n  {_REMEDY}")
        repositories, weights, artefacts = (
            data.get(name) for name in ("repositories", "weights", "artefacts")
        )
        if not (_are_texts(repositories) and _are_texts(weights) and isinstance(artefacts, dict)):
            raise UserError(f"{path} is incomplete.\n  {_REMEDY}")
        if not all(map(_are_texts, artefacts.values())):
            raise UserError(
                f"{path}: artefacts must have a key and the digest of an export each.\n  {_REMEDY}"
            )
        return Lock(repositories, weights, artefacts)

    def write(self, path: Path) -> None:
        """Write the lock atomically, unless the file already holds it."""
        content = self.as_text().encode()
        try:
            if not os.path.lexists(path) or read_regular(path) != content:
                write_file(path, content)
        except OSError as error:
            raise UserError(
                f"{path} cannot be written: {error.strerror or error}.\n  Check the directory, and run zoo make again."
            ) from None

    def as_text(self) -> str:
        """Return the content of the file: sorted, so that version control shows changes."""
        data: dict[str, Any] = {
            "format": FORMAT,
            "repositories": self.repositories,
            "weights": self.weights,
            "artefacts": self.artefacts,
        }
        return json.dumps(data, indent=2, sort_keys=True) + "\n"


_REMEDY = "Restore it from version control, or remove it and run zoo make."


def _are_texts(value: object) -> TypeGuard[dict[str, str]]:
    return isinstance(value, dict) and all(isinstance(digest, str) for digest in value.values())
