"""The parts of a checkpoint that its spec says nothing of: fields of its config, and tensors that no model reads.

They stay where a spec is written back to the class that it came from, so that nothing of a checkpoint is lost.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specs.model.model import Model
from zoo.checkpoints.carried import stated_in
from zoo.checkpoints.source import CheckpointWeights
from zoo.configs.exporting import describes
from zoo.configs.importing import tensors_beside
from zoo.families.common.config import CONFIG
from zoo.families.registry import family
from zoo.weights.modules import body_directory, split_name
from zoo.weights.names import GLINER
from zoo.weights.saving import TensorHeader
from zoo.weights.source import WeightSource
from zoo.weights.stored import INTEGERS, StoredTensor, narrowed, read_bytes

_OF_FILES = ("_commit_hash", "_name_or_path", "dtype", "quantization_config", "torch_dtype")
"""Fields about the files, which are written anew."""

Unused = Mapping[str, StoredTensor]
"""Tensors of a checkpoint that its spec does not use, by name."""


def original(
    spec: Model, config: dict[str, Any], origin: Path, source: WeightSource
) -> tuple[dict[str, Any], Unused]:
    """Return the config to write and the tensors to keep: the checkpoint's at ``origin``, if it has the family and
    class of ``config``, still describes the spec, and names tensors as they are written, or else ``config`` and none.

    A config that names code of its own is not kept, as the code does not come along.
    """
    fields = stated_in(body_directory(origin) / CONFIG)
    unused = source.unused if isinstance(source, CheckpointWeights) else {}
    readable = all(map(_is_kept, unused, unused.values()))
    if spec.head.span_width is not None:  # GLiNER's config keeps its other fields itself
        return config, unused if readable and os.path.lexists(origin / GLINER) else {}
    same = (fields.get("model_type"), fields.get("architectures")) == (
        config["model_type"],
        config["architectures"],
    )
    tensors = functools.partial(tensors_beside, origin)
    named = all(
        fields.get(name, value) == value for name, value in family(config["model_type"]).naming.items()
    )
    if (
        not same
        or not named
        or not readable
        or "auto_map" in fields
        or not describes(spec, fields, config, tensors)
    ):
        return config, {}
    kept = {name: value for name, value in fields.items() if name not in _OF_FILES}
    return kept, unused


def by_width(unused: Unused, dtype: torch.dtype) -> tuple[Unused, Unused]:
    """Return the tensors with values wider than the weights', which come before the weights, and the others, which come after:
    every tensor in a file begins at a multiple of its values' size."""
    headers = kept_headers(unused, dtype)
    order = sorted(unused, key=lambda name: -headers[name].dtype.itemsize)
    wide = {name for name in order if headers[name].dtype.itemsize > dtype.itemsize}
    return {name: unused[name] for name in order if name in wide}, {
        name: unused[name] for name in order if name not in wide
    }


def kept_headers(unused: Unused, dtype: torch.dtype) -> dict[str, TensorHeader]:
    """Return the shapes and dtypes of kept tensors, where weights have a ``dtype``."""
    return {
        name: TensorHeader(tuple(stored.shape), dtype if stored.dtype is not None else INTEGERS[stored.kind])
        for name, stored in unused.items()
    }


def kept_tensors(unused: Unused, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """Yield kept tensors one at a time."""
    for name, stored in unused.items():
        if stored.dtype is not None:
            yield name, narrowed(stored.read(), dtype, f"{stored.path}: {name}").contiguous()
            continue
        assert stored.extent is not None
        values = read_bytes(stored.path, stored.name, stored.extent).view(INTEGERS[stored.kind])
        yield name, values.view(tuple(stored.shape))


def _is_kept(name: str, stored: StoredTensor) -> bool:
    """Return whether a tensor can be written as it is."""
    integers = stored.kind in INTEGERS and stored.path.suffix == ".safetensors"
    return not split_name(name)[0] and (stored.dtype is not None or integers)
