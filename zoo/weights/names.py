"""The names of the files of a checkpoint, and indexes of shards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PureWindowsPath

from specs.base.errors import shorten
from zoo.files.json_values import read_object
from zoo.weights.source import WeightError

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLED_SINGLE, PICKLED_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"

METADATA = ".metadata"
"""The index of a checkpoint of ``torch.distributed.checkpoint``."""

_LONGEST_NAME = 255
"""The longest name of a file, in bytes."""

SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".gguf")


def has_weights(names: Iterable[str]) -> bool:
    """Whether the names of a directory's files include weights, or an index of them."""
    return any(name.endswith(SUFFIXES) or name in (INDEX, PICKLED_INDEX) for name in names)


def file_among(names: Iterable[str], where: object) -> str:
    """The file with the tensors or their index, among the names of a directory's files.

    Raises :class:`WeightError`, naming ``where``, when there is no such file, or several.
    """
    names = sorted(names)
    of_suffix = {suffix: [name for name in names if name.endswith(suffix)] for suffix in SUFFIXES}
    lone = of_suffix[".safetensors"] if len(of_suffix[".safetensors"]) == 1 else []
    for name in (SINGLE, INDEX, *lone, PICKLED_SINGLE, PICKLED_INDEX):
        if name in names:
            return name
    for suffix, files in of_suffix.items():
        if len(files) == 1:
            return files[0]
        if files:
            raise WeightError(
                f"{where} has several {suffix} files and no index\n  Name one of them: {', '.join(files[:8])}."
            )
    raise WeightError(
        f"{where} has no {SINGLE}, no {PICKLED_SINGLE} and no index of shards\n  value: {', '.join(names[:8]) or 'no files'}"
    )


def lone_shards(names: Iterable[str]) -> list[str]:
    """The shards of a checkpoint whose index is missing, where a directory has no other weights; otherwise none.

    Their names say how many there are. Raises :class:`WeightError` where some are missing.
    """
    names = [name for name in names if name.endswith(SUFFIXES) or name in (INDEX, PICKLED_INDEX)]
    shards = {name: shard for name in names if (shard := _SHARD.fullmatch(name))}
    kinds = {(shard["stem"], shard["count"], shard["suffix"]) for shard in shards.values()}
    if len(kinds) != 1 or len(shards) != len(names):
        return []
    ((stem, count, suffix),) = kinds
    every = [f"{stem}-{number:05}-of-{count}{suffix}" for number in range(1, int(count) + 1)]
    if missing := [name for name in every if name not in shards]:
        more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        raise WeightError(
            f"{len(missing)} of {count.lstrip('0')} shards are missing: {', '.join(missing[:4])}{more}\n  Download them."
        )
    return every


_SHARD = re.compile(r"(?P<stem>.+)-\d{5}-of-(?P<count>\d{5})(?P<suffix>\.safetensors|\.bin)")


def read_index(index: Path) -> dict[str, str]:
    """The file of each tensor that an index names, in the same directory.

    Raises :class:`WeightError` for a damaged index, and for files elsewhere.
    """
    places = read_object(index, WeightError, index.parent).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(shard, str) for shard in places.values()):
        raise WeightError(f"{index} has no weight_map from tensor names to file names")
    for shard in sorted(set(places.values())):
        misplaced = shard in ("", ".", "..") or PureWindowsPath(shard).name != shard
        if misplaced or len(shard.encode()) > _LONGEST_NAME or not shard.isprintable():
            raise WeightError(f"{index} names {shorten(shard)}, which is not a file next to it")
    return places


GLINER = "gliner_config.json"
"""The config of GLiNER's checkpoints, which have no ``config.json``."""
