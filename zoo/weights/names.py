"""The names of the files of a checkpoint, and indexes of shards."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path, PureWindowsPath
from typing import Any

from zoo.weights.source import WeightError

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLED_SINGLE, PICKLED_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"

_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".gguf")


def has_weights(names: Iterable[str]) -> bool:
    """Whether some of the names of a directory's files are of weights, or of an index of them."""
    return any(name.endswith(_SUFFIXES) or name in (INDEX, PICKLED_INDEX) for name in names)


def file_among(names: Iterable[str], where: object) -> str:
    """The file that holds the tensors or their index, among the names of a directory's files.

    Raises :class:`WeightError`, saying ``where``, when there is none, or it could be one of several.
    """
    names = sorted(names)
    of_suffix = {suffix: [name for name in names if name.endswith(suffix)] for suffix in _SUFFIXES}
    lone = of_suffix[".safetensors"] if len(of_suffix[".safetensors"]) == 1 else []
    for name in (SINGLE, INDEX, *lone, PICKLED_SINGLE, PICKLED_INDEX):
        if name in names:
            return name
    for suffix, found in of_suffix.items():
        if len(found) == 1:
            return found[0]
        if found:
            raise WeightError(
                f"{where} has several {suffix} files and no index of them: give one of {', '.join(found[:8])}"
            )
    raise WeightError(
        f"{where} has no {SINGLE}, no {PICKLED_SINGLE} and no index of shards; it has {', '.join(names[:8]) or 'no files'}"
    )


def read_index(index: Path) -> dict[str, str]:
    """The file of each tensor that an index names; each is beside the index.

    Raises :class:`WeightError` where it is no such index, or names files elsewhere.
    """
    try:
        text = index.read_bytes()
    except OSError as error:
        raise WeightError(f"{index} cannot be read: {error.strerror}") from None
    places = json_object(text, str(index)).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(shard, str) for shard in places.values()):
        raise WeightError(f"{index} has no weight_map from tensor names to file names")
    for shard in sorted(set(places.values())):
        if shard in ("", ".", "..") or PureWindowsPath(shard).name != shard:
            raise WeightError(f"{index} names {shard!r}, which is not a file beside it")
    return places


def json_object(text: bytes, what: str) -> dict[str, Any]:
    """The object that JSON text is; ``what`` names the text in the :class:`WeightError` where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise WeightError(f"{what} is not a JSON object")
    return value
