"""The files that zoo wrote in a directory: the files of its manifest, the records next to it, and the model card."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from zoo.files.card import CARD, has_own_card
from zoo.files.reading import read_regular

MANIFEST, CONVERSION = "export.json", "conversion.json"
"""The manifests of exports and of converted checkpoints."""
BUILD = "build.json"
"""The record of how an export was built, beside its manifest."""
SIGNATURE, BILL_OF_MATERIALS = "model.sig", "bom.cdx.json"
"""The signature of an export, and its bill of materials, beside its manifest."""
ADAPTER = ".onnx_adapter"
"""The ending of the file of an adapter that can be switched on, in ONNX Runtime's own format, beside the graphs."""
PROBE = "probe.npz"
"""A verified case of an export: inputs, and the outputs that are expected of them."""

_REQUIRED = {MANIFEST: {"zoo", "graphs", "files"}, CONVERSION: {"model_type", "files"}}
BESIDE: dict[str, dict[str, set[str]]] = {
    MANIFEST: {
        BUILD: {"format", "export"},
        PROBE: set(),
        BILL_OF_MATERIALS: {"bomFormat", "specVersion"},
        SIGNATURE: {"dsseEnvelope", "verificationMaterial"},
    },
    CONVERSION: {},
}
"""Records next to a manifest, which does not list them, and the required keys of each; the build record lists the probe."""


def own_files(directory: Path, manifest: str) -> frozenset[str] | None:
    """The paths of zoo's own files: the manifest, the files it lists, the records next to it, and an unedited card.

    None if the directory has no valid manifest.

    Raises OSError if the directory cannot be read.
    """
    if manifest not in os.listdir(directory):
        return None
    files = _read_object(directory / manifest, _REQUIRED[manifest]).get("files")
    if not isinstance(files, dict) or not files or not all(map(_is_inside, files)):
        return None
    beside = [name for name, keys in BESIDE[manifest].items() if _is_record(directory, name, keys)]
    card = [CARD] if manifest == MANIFEST and has_own_card(directory) else []
    return frozenset((*files, manifest, *beside, *card))


def _is_record(directory: Path, name: str, keys: set[str]) -> bool:
    if name == PROBE:
        return bool(_read_object(directory / BUILD, {"export", "probe"}).get("probe"))
    return bool(_read_object(directory / name, keys))


def other_files(directory: Path, own: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """The paths in a directory that are not its own files, parents first, and whether each is a directory.

    A directory that holds one of its own files is left out; links are not followed.
    """
    parents = {str(parent) for path in own for parent in PurePosixPath(path).parents}
    for path, entry in entries(directory):
        is_directory = entry.is_dir(follow_symlinks=False)
        if path not in (parents if is_directory else own):
            yield path, is_directory


def entries(directory: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Everything below a directory by its path in it, parents first; links are not followed."""
    pending = [""]
    while pending:
        below = pending.pop()
        with os.scandir(directory / below) as scan:
            inside = sorted(scan, key=lambda entry: entry.name)
        for entry in inside:
            path = f"{below}/{entry.name}" if below else entry.name
            yield path, entry
            if entry.is_dir(follow_symlinks=False):
                pending.append(path)


def _is_inside(path: str) -> bool:
    """Whether a manifest may list a path: relative, normal, and inside the directory."""
    parts = PurePosixPath(path).parts
    return bool(parts) and parts[0] != "/" and ".." not in parts and "/".join(parts) == path


def _read_object(path: Path, required: set[str]) -> dict[str, Any]:
    """The object in a regular file, if it has some keys; else an empty one."""
    try:
        data = None if path.is_symlink() else json.loads(read_regular(path, path.parent))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) and data.keys() >= required else {}
