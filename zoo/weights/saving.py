"""Writing safetensors, one tensor at a time: a single file, or shards with an index.

The format: 8 bytes with the length of a JSON header, the header, and the tensors without gaps
(https://github.com/huggingface/safetensors#format).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from zoo.weights.names import INDEX, SINGLE
from zoo.weights.stored import FLOATS, INTEGERS

KINDS = {dtype: name for name, dtype in {**FLOATS, **INTEGERS}.items()}
SHARD = 5_000_000_000
"""The largest shard in bytes, as in transformers; a larger tensor gets its own."""

OnBytes = Callable[[int], None]


@dataclass(frozen=True)
class TensorHeader:
    """A tensor to be written."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def nbytes(self) -> int:
        """Its size in the file."""
        return torch.Size(self.shape).numel() * self.dtype.itemsize


def save(
    directory: Path,
    entries: Mapping[str, TensorHeader],
    tensors: Iterable[tuple[str, Tensor]],
    progress: OnBytes = lambda count: None,
    *,
    shard: int = SHARD,
) -> list[str]:
    """Write tensors, which come in the order of their entries; return the names of the files.

    At most one tensor is in memory at a time.
    """
    shards = _shards(entries, shard)
    total = sum(entry.nbytes for entry in entries.values())
    names = [SINGLE] if len(shards) == 1 else [
        f"model-{i:05}-of-{len(shards):05}.safetensors" for i in range(1, len(shards) + 1)
    ]  # fmt: skip
    coming = iter(tensors)
    for name, part in zip(names, shards, strict=True):
        _write(directory / name, part, coming, progress)
    if len(shards) == 1:
        return names
    places = {tensor: name for name, part in zip(names, shards, strict=True) for tensor in part}
    index = {"metadata": {"total_size": total}, "weight_map": places}
    (directory / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    return [*names, INDEX]


def _shards(entries: Mapping[str, TensorHeader], most: int) -> list[dict[str, TensorHeader]]:
    shards: list[dict[str, TensorHeader]] = [{}]
    size = 0
    for name, entry in entries.items():
        if shards[-1] and size + entry.nbytes > most:
            shards.append({})
            size = 0
        shards[-1][name] = entry
        size += entry.nbytes
    return shards


def _write(
    path: Path, entries: Mapping[str, TensorHeader], tensors: Iterable[tuple[str, Tensor]], progress: OnBytes
) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, entry in entries.items():
        extent = [end, end + entry.nbytes]
        header[name] = {"dtype": KINDS[entry.dtype], "shape": list(entry.shape), "data_offsets": extent}
        end = extent[1]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for (wanted, entry), (name, tensor) in zip(entries.items(), tensors, strict=False):
            assert (wanted, entry.shape, entry.dtype) == (name, tuple(tensor.shape), tensor.dtype)
            file.write(
                tensor.reshape(-1).view(torch.uint8).numpy().data
                if tensor.dim()
                else bytes(tensor.view(1).view(torch.uint8))
            )
            progress(entry.nbytes)
