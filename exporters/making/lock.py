"""``zoo.lock``: the commits of hub repositories and the digests of weights and artefacts, for version control."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specs.errors import UserError
from zoo.files.whole import write_file

FORMAT = 1
LOCK = "zoo.lock"


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
        """Return the lock in a file; without a file, an empty one. Raises :class:`specs.errors.UserError` for a damaged one."""
        try:
            data = json.loads(path.read_bytes())
        except FileNotFoundError:
            return Lock()
        except (OSError, ValueError) as error:
            raise _damaged(path, f"cannot be read: {error}") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise _damaged(path, f"does not have format {FORMAT}")
        parts: list[Any] = [data.get(name) for name in ("repositories", "weights", "artefacts")]
        if not all(isinstance(part, dict) for part in parts):
            raise _damaged(path, "is incomplete")
        return Lock(*parts)

    def write(self, path: Path) -> None:
        """Write the lock atomically, unless the file already holds it."""
        content = self.as_text().encode()
        if not path.is_file() or path.read_bytes() != content:
            write_file(path, content)

    def as_text(self) -> str:
        """Return the content of the file: sorted, so that version control shows changes."""
        data: dict[str, Any] = {
            "format": FORMAT,
            "repositories": self.repositories,
            "weights": self.weights,
            "artefacts": self.artefacts,
        }
        return json.dumps(data, indent=2, sort_keys=True) + "\n"


def _damaged(path: Path, why: str) -> UserError:
    return UserError(f"{path} {why}.\n  Restore it from version control, or remove it and run zoo make.")
