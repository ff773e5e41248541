"""Tensors in safetensors files: one file, or shards with an index, read by memory map.

The format: 8 bytes with the length of a JSON header, the header, and the tensors without gaps
(https://github.com/huggingface/safetensors#format).
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

import torch
from torch import Tensor

from specs.suggest import did_you_mean
from zoo.weights.source import WeightError

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"

_LONGEST_HEADER = 100_000_000  # bytes, as the format's own library has it
_PICKLED = (b"PK\x03\x04", b"\x80\x02", b"\x80\x04")  # torch.save's archive, and bare pickles
_FLOATS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "U32": 4, "I32": 4, "U64": 8, "I64": 8, "C64": 8}
_SIZES |= {"F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1}
_SIZES |= {name: dtype.itemsize for name, dtype in _FLOATS.items()}


@dataclass(frozen=True)
class Stored:
    """Where a tensor is: its file, name, type, shape, and bytes from ``offset`` on."""

    path: Path
    name: str
    kind: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int

    @property
    def dtype(self) -> torch.dtype | None:
        """Its floating-point type, or None where it is not one that weights come in."""
        return _FLOATS.get(self.kind)

    def read(self) -> Tensor:
        """The tensor on the mapped pages of the file: nothing is copied until someone writes to it.

        Every call maps anew, so that tensors share no memory and a dropped one gives back its pages; the file must
        keep its contents meanwhile.  Raises :class:`WeightError` when it does not.
        """
        assert self.dtype is not None
        try:
            pages = torch.from_file(
                str(self.path), shared=False, size=self.offset + self.nbytes, dtype=torch.uint8
            )
        except RuntimeError as error:
            raise WeightError(f"{self.path}: {self.name} cannot be read: {error}") from None
        values = pages[self.offset :]
        if self.offset % self.dtype.itemsize:  # no view of unaligned values
            values = values.clone()
        return values.view(self.dtype).view(self.shape)


@dataclass(frozen=True)
class TensorFiles:
    """The tensors of a checkpoint by name, and the path that the user gave for it."""

    path: Path
    tensors: dict[str, Stored]

    @classmethod
    def open(cls, path: Path) -> TensorFiles:
        """The tensors of a .safetensors file, an index of shards, or a directory with either.

        Only headers are read.  Raises :class:`WeightError`, naming the file and what is wrong with it.
        """
        source = _in_directory(path) if path.is_dir() else path
        if source.exists() and not source.is_file():
            raise WeightError(f"{source} is not a regular file")
        if source.name.endswith(".json"):
            return cls(path, _read_shards(source))
        return cls(path, read_header(source))


def _pickled(where: str) -> WeightError:
    return WeightError(
        f"{where} pickled weights only, which can run code when they are read: "
        f"save them again as {SINGLE} (transformers: save_pretrained)"
    )


def _in_directory(directory: Path) -> Path:
    """The file of a directory that holds the tensors or their index."""
    names = sorted(_listed(directory))
    for name in (SINGLE, INDEX):
        if name in names:
            return directory / name
    found = [name for name in names if name.endswith(".safetensors")]
    if len(found) == 1:
        return directory / found[0]
    if found:
        raise WeightError(
            f"{directory} has several .safetensors files and no {INDEX}: give one of {', '.join(found[:8])}"
        )
    if any(name.endswith((".bin", ".pt", ".pth", ".ckpt")) for name in names):
        raise _pickled(f"{directory} has")
    raise WeightError(
        f"{directory} has no {SINGLE} and no {INDEX}; it has {', '.join(names[:8]) or 'no files'}"
    )


def _listed(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError as error:
        raise WeightError(f"{directory} cannot be read: {error.strerror}") from None


def read_header(path: Path) -> dict[str, Stored]:
    """The tensors that a .safetensors file holds, by name.

    Raises :class:`WeightError` when the file is truncated, or its header is not one.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < 8:
                raise WeightError(f"{path} is truncated or no safetensors file: it has {size} bytes")
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if length > min(size - 8, _LONGEST_HEADER):
                if start.startswith(_PICKLED):
                    raise _pickled(f"{path} has")
                raise WeightError(
                    f"{path} is truncated or no safetensors file: "
                    f"it announces a header of {length:,} bytes, and has {size - 8:,} more"
                )
            header = _json_object(file.read(length), f"{path}: the header")
    except OSError as error:
        raise WeightError(f"{path} cannot be read: {error.strerror}") from None
    header.pop("__metadata__", None)
    tensors = {name: _stored(path, name, entry, 8 + length) for name, entry in header.items()}
    _check_layout(path, tensors, 8 + length, size)
    return tensors


def _json_object(text: bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise WeightError(f"{what} is not a JSON object")
    return value


def _stored(path: Path, name: str, entry: Any, start: int) -> Stored:
    match entry:
        case {"dtype": str(kind), "shape": list(shape), "data_offsets": [int(begin), int(end)]} if all(
            type(length) is int and length >= 0 for length in shape
        ):
            pass
        case _:
            raise WeightError(f"{path}: the header has no dtype, shape and data_offsets for {name}")
    if kind not in _SIZES:
        raise WeightError(f"{path}: {name} has dtype {kind}, which is unknown: {did_you_mean(kind, _SIZES)}")
    if end - begin != math.prod(shape) * _SIZES[kind]:
        shown = " x ".join(map(str, shape))
        raise WeightError(
            f"{path}: {name} is {shown} of {kind}, and the header gives it {end - begin:,} bytes"
        )
    return Stored(path, name, kind, tuple(shape), start + begin, end - begin)


def _check_layout(path: Path, tensors: dict[str, Stored], start: int, size: int) -> None:
    """The tensors must lie end to end from the header to the end of the file."""
    end = start
    for stored in sorted(tensors.values(), key=lambda stored: (stored.offset, stored.nbytes)):
        if stored.offset != end:
            raise WeightError(f"{path}: {stored.name} does not start where the tensor before it ends")
        end += stored.nbytes
    if end > size:
        raise WeightError(f"{path} is truncated: its header promises {end:,} bytes, and it has {size:,}")
    if end < size:
        raise WeightError(f"{path} has {size - end:,} bytes that its header does not name")


def _read_shards(index: Path) -> dict[str, Stored]:
    """The tensors that an index names, from the files beside it."""
    try:
        text = index.read_bytes()
    except OSError as error:
        raise WeightError(f"{index} cannot be read: {error.strerror}") from None
    places = _json_object(text, str(index)).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(shard, str) for shard in places.values()):
        raise WeightError(f"{index} has no weight_map from tensor names to file names")
    shards = sorted(set(places.values()))
    for shard in shards:
        if shard in ("", ".", "..") or PureWindowsPath(shard).name != shard:
            raise WeightError(f"{index} names {shard!r}, which is not a file beside it")
    missing = [shard for shard in shards if not (index.parent / shard).is_file()]
    if missing:
        raise WeightError(
            f"{index} names {len(missing)} of {len(shards)} files that are not there: {_some(missing)}"
        )
    headers = {shard: read_header(index.parent / shard) for shard in shards}
    lacking = [f"{name} in {shard}" for name, shard in places.items() if name not in headers[shard]]
    if lacking:
        raise WeightError(f"{index} names tensors that their files do not hold: {_some(lacking)}")
    return {name: headers[shard][name] for name, shard in places.items()}


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
