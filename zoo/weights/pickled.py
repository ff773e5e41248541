"""Checkpoints written by torch.save (.bin, .pt, .pth): archives, and files from before PyTorch 1.6.

Only PyTorch's weights-only unpickler reads them. It makes tensors and plain containers and refuses everything else,
so that no code in a file is ever run.
"""

from __future__ import annotations

import re
import struct
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zoo.files.reading import open_regular
from zoo.weights.source import WeightError
from zoo.weights.stored import FLOATS, FileTensor, StoredTensor, read_bytes

_KINDS = {dtype: kind for kind, dtype in FLOATS.items()} | {
    torch.int8: "I8", torch.uint8: "U8", torch.int16: "I16", torch.int32: "I32", torch.int64: "I64", torch.bool: "BOOL",
    torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
}  # fmt: skip
_SAVE_AGAIN = "Save its state_dict() again, as safetensors or with torch.save."
_GLOBAL = re.compile(r"GLOBAL ([\w.]+)")


@dataclass(frozen=True)
class ArchivedTensor(FileTensor):
    """A tensor in a record of an archive, ``nbytes`` from ``offset`` on, with ``strides`` in values."""

    strides: tuple[int, ...]
    offset: int
    nbytes: int

    @property
    def extent(self) -> tuple[int, int]:
        return self.offset, self.nbytes

    def outline(self) -> Tensor:
        return torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device="meta")

    def read(self) -> Tensor:
        assert self.dtype is not None
        flat = read_bytes(self.path, self.name, self.extent).view(self.dtype)
        return flat.as_strided(self.shape, self.strides)


@dataclass(frozen=True)
class LoadedTensor(FileTensor):
    """A tensor of a file that can only be read whole."""

    values: Tensor

    @property
    def extent(self) -> None:
        return None

    def outline(self) -> Tensor:
        return self.values.to("meta")

    def read(self) -> Tensor:
        return self.values.clone()


def read_archive(path: Path) -> dict[str, StoredTensor]:
    """The tensors of an archive (torch.save since 1.6) by name, without reading values.

    Raises :class:`WeightError` where it is truncated, or holds anything but tensors by name.
    """
    records = _records(path)
    tensors = _by_name(path, _unpickled(path, "meta"))
    return {name: _archived(path, name, tensor, records) for name, tensor in tensors.items()}


def read_legacy(path: Path) -> dict[str, StoredTensor]:
    """The tensors of a file of torch.save before 1.6 by name, with their values in memory.

    Raises :class:`WeightError` where it is truncated, or holds anything but tensors by name.
    """
    tensors = _by_name(path, _unpickled(path, "cpu"))
    return {
        name: LoadedTensor(path, name, _kind(tensor), tuple(tensor.shape), tensor.detach())
        for name, tensor in tensors.items()
    }


def _records(path: Path) -> dict[int, int]:
    """The sizes of the records of an archive by the offsets of their bytes."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            names = {name.partition("/")[2] for name in archive.namelist()}
            if "constants.pkl" in names:
                raise WeightError(f"{path} is a TorchScript program, not weights\n  {_SAVE_AGAIN}")
            if "data.pkl" not in names:
                raise WeightError(f"{path} is a zip archive, but not one that torch.save wrote")
            for info in archive.infolist():
                if info.compress_type != zipfile.ZIP_STORED:
                    raise WeightError(
                        f"{path}: {info.filename} is compressed, which torch.save never does\n  {_SAVE_AGAIN}"
                    )
                if info.filename.endswith("/byteorder") and archive.read(info) != b"little":
                    raise WeightError(
                        f"{path} is from a big-endian machine\n  Load it there, and save its tensors as safetensors."
                    )
            return {_start(file, info): info.file_size for info in archive.infolist()}
    except OSError as error:
        raise WeightError(f"{path} cannot be read: {error.strerror}") from None
    except (zipfile.BadZipFile, struct.error, NotImplementedError, EOFError, ValueError):
        raise WeightError(
            f"{path} is truncated or damaged: the table of records at its end is missing\n  Download it again."
        ) from None


def _start(file: Any, info: zipfile.ZipInfo) -> int:
    """The offset of a record's bytes, after its header, name and padding."""
    file.seek(info.header_offset + 26)
    name, extra = struct.unpack("<HH", file.read(4))
    return info.header_offset + 30 + name + extra


def _unpickled(path: Path, device: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # warnings about old storages and about files that may not be checkpoints
            return torch.load(path, map_location=device, weights_only=True)
    except MemoryError:
        raise
    except OSError as error:
        raise WeightError(f"{path} cannot be read: {error.strerror}") from None
    except Exception as error:  # whatever the unpickler raises for a file that is not a checkpoint
        raise WeightError(_refusal(path, error)) from None


def _refusal(path: Path, error: Exception) -> str:
    text = str(error)
    reference = _GLOBAL.search(text)
    if reference:
        return f"{path} holds {reference[1]}, which is code, not data; it was not run\n  {_SAVE_AGAIN}"
    if "legacy .tar" in text:
        return f"{path} has the format used before PyTorch 0.2\n  {_SAVE_AGAIN}"
    reason = (text.strip().splitlines() or [type(error).__name__])[-1 if "Weights only" in text else 0]
    return f"{path} is truncated, or torch.save did not write it: {reason}"


def _by_name(path: Path, content: Any) -> dict[str, Tensor]:
    """The tensors by name in a checkpoint, or in the one mapping within it that has any."""
    if not isinstance(content, Mapping):
        raise WeightError(f"{path} holds a {type(content).__name__}, not tensors by name\n  {_SAVE_AGAIN}")
    mappings = [key for key, value in content.items() if _has_tensors(value)]
    if len(mappings) > 1:
        raise WeightError(
            f"{path} holds tensors by name in several places: {_keys(mappings)}\n  Save only the mapping to read."
        )
    if mappings:
        content = content[mappings[0]]
    if not any(isinstance(value, Tensor) for value in content.values()):
        raise WeightError(f"{path} holds no tensors by name; its keys are {_keys(content)}")
    others = [key for key, value in content.items() if not isinstance(value, Tensor)]
    nameless = [key for key in content if not isinstance(key, str)]
    if others or nameless:
        raise WeightError(f"{path} holds more than tensors by name: {_keys(others or nameless)}")
    return dict(content)


def _has_tensors(value: Any) -> bool:
    return isinstance(value, Mapping) and any(isinstance(inner, Tensor) for inner in value.values())


def _keys(keys: Any) -> str:
    shown = [str(key) for key in keys]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return (", ".join(shown[:8]) or "none") + more


def _kind(tensor: Tensor) -> str:
    return _KINDS.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))


def _archived(path: Path, name: str, tensor: Tensor, records: Mapping[int, int]) -> ArchivedTensor:
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise WeightError(f"{path}: {name} is sparse or quantized; weights must be plain tensors")
    shape, strides, itemsize = tuple(tensor.shape), tensor.stride(), tensor.dtype.itemsize
    reach = sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True)) + 1
    nbytes = reach * itemsize if tensor.numel() else 0
    start = tensor.untyped_storage()._checkpoint_offset or 0
    offset = int(tensor.storage_offset()) * itemsize
    if offset + nbytes > records.get(start, 0):
        raise WeightError(f"{path}: {name} extends beyond its stored values")
    return ArchivedTensor(path, name, _kind(tensor), shape, strides, start + offset, nbytes)
