"""The tensors of a checkpoint: one file, or shards with an index, in any supported format."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from zoo.files.reading import open_regular, unreadable
from zoo.weights.adapters import refuse_adapter, refuse_adapter_file
from zoo.weights.distributed import read_distributed
from zoo.weights.gguf import read_gguf
from zoo.weights.gguf_file import MAGIC
from zoo.weights.modules import body_directory, dense_modules, side_layers
from zoo.weights.names import METADATA, file_among, lone_shards, read_index
from zoo.weights.pickled import read_archive, read_legacy
from zoo.weights.safetensors import begins_safetensors, read_safetensors
from zoo.weights.source import WeightError
from zoo.weights.stored import StoredTensor

_ANYWHERE = re.compile(r"\b(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
"""torch.compile, FSDP, and checkpoints of activations; each may wrap parts of a model."""

_AROUND = "module."
"""DataParallel and DistributedDataParallel, which wrap a whole model."""

Stored = TypeVar("Stored")

_START = 64  # bytes that identify the format of a file


@dataclass(frozen=True)
class Format:
    """A format of tensor files: its name, its suffixes, and its reader."""

    title: str
    suffixes: tuple[str, ...]
    read: Callable[[Path], Mapping[str, StoredTensor]]


_SAFETENSORS = Format("safetensors", (".safetensors",), read_safetensors)
_ARCHIVE = Format("an archive of torch.save", (".bin", ".pt", ".pth", ".ckpt"), read_archive)
_LEGACY = Format("a pickle of torch.save", _ARCHIVE.suffixes, read_legacy)

_GGUF = Format("GGUF", (".gguf",), read_gguf)
_FORMATS = (_SAFETENSORS, _ARCHIVE, _GGUF)

_BEGINNINGS = {b"PK\x03\x04": _ARCHIVE, MAGIC: _GGUF} | {
    b"\x80" + bytes([protocol]): _LEGACY for protocol in range(2, 6)
}
_NO_WEIGHTS = {
    b"version https://git-lfs": "a git-lfs pointer, not the file itself\n  Fetch the file with git lfs pull.",
    b"<!doctype": "a web page, perhaps an error or a login\n  Download the file again.",
    b"<html": "a web page, perhaps an error or a login\n  Download the file again.",
    b"<?xml": "an XML document, perhaps an error\n  Download the file again.",
    b"\x89hdf": "an HDF5 file of TensorFlow or Keras\n  Use the checkpoint's safetensors.",
    b"\x1f\x8b": "compressed with gzip\n  Unpack it first.",
}  # prefixes in lower case


@dataclass(frozen=True)
class TensorFiles:
    """The tensors of a checkpoint by name, and the path that the user gave for it."""

    path: Path
    tensors: Mapping[str, StoredTensor]

    @classmethod
    def open(cls, path: Path) -> TensorFiles:
        """The tensors of a file, an index of shards, or a directory with either; safetensors are preferred to
        pickles.

        The names of tensors in the Dense modules of a sentence-transformers directory begin with the directories of
        their modules. No values are read where the format allows. Raises :class:`WeightError` with the file and its
        fault.
        """
        if not path.is_dir():
            tensors = dict(_read_source(path, None))
            refuse_adapter_file(path, iter(tensors))
            return cls(path, without_wrappers(tensors, path))
        refuse_adapter(path)
        if os.path.lexists(path / METADATA):
            return cls(path, without_wrappers(read_distributed(path), path))
        tensors = _read_directory(body_directory(path))
        refuse_adapter_file(path, iter(tensors))
        tensors = without_wrappers(tensors, path)
        for directory, module in dense_modules(path).items():
            inner = _read_source(module / file_among(_listed(module), module), path)
            tensors |= {f"{directory}.{name}": stored for name, stored in inner.items()}
        for layer, file in side_layers(path).items():
            tensors |= {f"{layer}.{name}": stored for name, stored in _read_source(file, path).items()}
        return cls(path, tensors)


def read_tensors(path: Path, within: Path) -> Mapping[str, StoredTensor]:
    """The tensors of one file, which must lie in the directory ``within``.  Raises as :meth:`TensorFiles.open`."""
    return _read(path, within)


def _read_directory(path: Path) -> dict[str, StoredTensor]:
    """The tensors of a directory: of its file, of the shards of its index, or of shards that name each other."""
    names = _listed(path)
    shards = lone_shards(names)
    if not shards:
        return dict(_read_source(path / file_among(names, path), path))
    tensors: dict[str, StoredTensor] = {}
    for shard in shards:
        held = _read(path / shard, path)
        if twice := sorted(tensors.keys() & held.keys()):
            raise WeightError(f"{path} has {twice[0]} in several shards, and no index\n  Download its index.")
        tensors |= held
    return tensors


def _read_source(source: Path, within: Path | None) -> Mapping[str, StoredTensor]:
    """The tensors of a file, or of the shards that an index names."""
    return _read_shards(source) if source.name.endswith(".json") else _read(source, within)


def _listed(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError as error:
        raise WeightError(f"{directory} cannot be read: {error.strerror}") from None


def _read(path: Path, within: Path | None) -> Mapping[str, StoredTensor]:
    """The tensors of one file, by its contents, which its suffix must not contradict."""
    try:
        with open_regular(path, within) as file:
            start = file.read(_START)
    except OSError as error:
        raise WeightError(unreadable(path, error)) from None
    if not start:
        raise WeightError(
            f"{path} is empty, perhaps because its download was truncated\n  Download it again."
        )
    for beginning, what in _NO_WEIGHTS.items():
        if start.lower().lstrip().startswith(beginning):
            raise WeightError(f"{path} is {what}")
    held = _SAFETENSORS if begins_safetensors(start) else None
    held = held or next(
        (held for beginning, held in _BEGINNINGS.items() if start.startswith(beginning)), None
    )
    named = next((named for named in _FORMATS if path.suffix in named.suffixes), None)
    if held and named and path.suffix not in held.suffixes:
        raise WeightError(
            f"{path} has suffix {path.suffix}, but holds {held.title}\n  Rename it to end in {held.suffixes[0]}."
        )
    return (held or named or _SAFETENSORS).read(path)


def _read_shards(index: Path) -> dict[str, StoredTensor]:
    """The tensors that an index names, from the files next to it."""
    places = read_index(index)
    shards = sorted(set(places.values()))
    missing = [shard for shard in shards if not os.path.lexists(index.parent / shard)]
    if missing:
        raise WeightError(
            f"{index} lists {len(shards)} files, {len(missing)} of them missing: {_some(missing)}\n  Download them."
        )
    held = {shard: _read(index.parent / shard, index.parent) for shard in shards}
    lacking = [f"{name} in {shard}" for name, shard in places.items() if name not in held[shard]]
    if lacking:
        raise WeightError(
            f"{index} lists tensors missing from their files: {_some(lacking)}\n  Download the checkpoint again."
        )
    return {name: held[shard][name] for name, shard in places.items()}


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def without_wrappers(tensors: Mapping[str, Stored], path: Path) -> dict[str, Stored]:
    """The tensors by the names that they have without wrappers.

    Raises :class:`WeightError` where two of them become one.
    """
    names = {name: _ANYWHERE.sub("", name) for name in tensors}
    while names and all(name.startswith(_AROUND) for name in names.values()):
        names = {stored: name.removeprefix(_AROUND) for stored, name in names.items()}
    plain = {name: tensors[stored] for stored, name in names.items()}
    if len(plain) != len(tensors):
        counted = list(names.values())
        twice = [stored for stored, name in names.items() if counted.count(name) > 1]
        raise WeightError(f"{path} has one tensor twice: as {twice[0]} and as {twice[1]}")
    return plain
