"""Reading checkpoints of ``torch.distributed.checkpoint``: shards of tensors in the files of the processes that wrote them.

The index is a pickle, of which only the classes of the format are created.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zoo.files.reading import check_regular, open_regular, unreadable
from zoo.weights.names import METADATA
from zoo.weights.source import WeightError
from zoo.weights.stored import FLOATS, read_bytes

MODEL = "model"
"""The entry of the state that holds the weights."""

_MODULES = (
    "torch.distributed.checkpoint.metadata",
    "torch.distributed.checkpoint.filesystem",
    "torch._C._distributed_c10d",
)
_NAMES = {
    ("torch", "Size"),
    ("torch.serialization", "_get_layout"),
    ("torch.distributed.checkpoint._extension", "ExtensionRegistry"),
    ("pathlib", "PosixPath"),
    ("collections", "OrderedDict"),
}
_KINDS = {dtype: kind for kind, dtype in FLOATS.items()}


@dataclass(frozen=True)
class Shard:
    """A part of a tensor: where it begins, its sizes, and where its bytes are."""

    begin: tuple[int, ...]
    sizes: tuple[int, ...]
    path: Path
    extent: tuple[int, int]

    def read(self, name: str) -> Tensor:
        """The values, as saved by ``torch.save``."""
        stored = read_bytes(self.path, name, self.extent).numpy().tobytes()
        try:
            values: Tensor = torch.load(io.BytesIO(stored), map_location="cpu", weights_only=True)
        except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
            raise WeightError(f"{self.path}: {name} cannot be read: {error}") from None
        return values


@dataclass(frozen=True)
class DistributedTensor:
    """A tensor of a distributed checkpoint; one is put together at a time."""

    path: Path
    name: str
    dtype: torch.dtype | None
    shape: tuple[int, ...]
    shards: tuple[Shard, ...]

    @property
    def kind(self) -> str:
        return str(self.dtype) if self.dtype is None else _KINDS.get(self.dtype, str(self.dtype))

    @property
    def extent(self) -> None:
        return None

    def outline(self) -> Tensor:
        return torch.empty(self.shape, dtype=self.dtype, device="meta")

    def read(self) -> Tensor:
        values = torch.empty(self.shape, dtype=self.dtype)
        for shard in self.shards:
            within = tuple(
                slice(first, first + size) for first, size in zip(shard.begin, shard.sizes, strict=True)
            )
            values[within] = shard.read(self.name)
        return values


def read_distributed(directory: Path) -> dict[str, DistributedTensor]:
    """The weights in a directory by name.

    Raises :class:`WeightError` for a damaged index, missing files, and a checkpoint without weights.
    """
    index = directory / METADATA
    try:
        with open_regular(index, directory) as file:
            metadata: Any = _Restricted(file).load()
        entries, places = metadata.state_dict_metadata, metadata.storage_data
        tensors = {
            name.removeprefix(f"{MODEL}."): _tensor(directory, name, entry, places)
            for name, entry in entries.items()
            if name.startswith(f"{MODEL}.") and hasattr(entry, "chunks")
        }
    except OSError as error:
        raise WeightError(unreadable(index, error)) from None
    except WeightError:
        raise
    except Exception as error:
        raise WeightError(f"{index} is damaged: {error}\n  Save the checkpoint again.") from None
    if not tensors:
        raise WeightError(f"{directory} has no tensors below {MODEL!r}\n  Save it with zoo.save_checkpoint.")
    return tensors


def _tensor(directory: Path, name: str, entry: Any, places: Any) -> DistributedTensor:
    shards = []
    stored = {tuple(index.offset or ()): info for index, info in places.items() if index.fqn == name}
    for chunk in entry.chunks:
        info = stored[tuple(chunk.offsets)]
        path = directory / Path(info.relative_path).name
        try:
            check_regular(path, directory)
        except FileNotFoundError:
            raise WeightError(
                f"{path} is missing, and {directory / METADATA} lists it\n  Copy the whole directory."
            ) from None
        shards.append(Shard(tuple(chunk.offsets), tuple(chunk.sizes), path, (info.offset, info.length)))
    dtype = entry.properties.dtype
    known = dtype if dtype in _KINDS else None
    return DistributedTensor(
        directory, name.removeprefix(f"{MODEL}."), known, tuple(entry.size), tuple(shards)
    )


class _Restricted(pickle.Unpickler):
    """An unpickler that creates the classes of the format alone."""

    def find_class(self, module: str, name: str) -> Any:
        if module in _MODULES or (module, name) in _NAMES or (module == "torch" and name in _dtypes()):
            return super().find_class(module, name)
        raise WeightError(f"the index of a checkpoint names {module}.{name}, which it has no use for")


def _dtypes() -> set[str]:
    return {str(dtype).removeprefix("torch.") for dtype in _KINDS}
