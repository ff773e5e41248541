"""The inputs that determine an artefact: its spec, its weights, its options, and the versions of the build tools."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from specs.base.plugins import FAMILIES, plugin_entries
from zoo.record.changes import input_changes

_TOOLS = ("zoo", "torch", "onnx", "numpy")
_RUNTIMES = ("onnxruntime-gpu", "onnxruntime")
_KEY_FORMAT = 1


@dataclass(frozen=True)
class Inputs:
    """The inputs of one artefact; equal inputs give equal files.

    ``spec`` is the SHA-256 of the resolved spec; ``weights`` is random with a seed, none, a digest of files, or a
    repository at a commit. ``calibrate`` is the digest of the representative inputs, if any.
    """

    spec: str
    weights: str
    calibrate: str | None
    options: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def key(self) -> str:
        """The SHA-256 that names the artefact in the cache."""
        return digest_of({"format": _KEY_FORMAT, **asdict(self)})

    def as_dict(self) -> dict[str, Any]:
        """As JSON data, with the key."""
        return {"key": self.key, **asdict(self)}

    def changes(self, earlier: Mapping[str, Any]) -> Iterator[str]:
        """Return the differences from the recorded inputs of an earlier build, one phrase each."""
        if earlier.get("spec") != self.spec:
            yield "spec"
        yield from input_changes(earlier, asdict(self))


def digest_of(data: Any) -> str:
    """Return the SHA-256 of JSON data, independent of the order of its keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def tool_versions() -> dict[str, str]:
    """Return the versions of the packages that affect files and verification, and of plugins."""
    versions = {name: version(name) for name in _TOOLS}
    for name in _RUNTIMES:
        try:
            versions["onnxruntime"] = version(name)
            break
        except PackageNotFoundError:
            continue
    for point in (*plugin_entries(), *plugin_entries(FAMILIES)):
        if point.dist is not None and point.dist.name != "zoo":
            versions[point.dist.name] = point.dist.version
    return versions
