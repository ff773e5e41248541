"""From a spec with its weights to a checkpoint that ``from_pretrained`` loads."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from specs.forms.resolved import resolved
from specs.language.writing import dump
from specs.model.model import Model
from zoo.builder import assemble
from zoo.checkpoints.carried import (
    carry_files,
    carry_static_queries,
    check_files,
    config_files,
    described,
    origin_of,
)
from zoo.checkpoints.open_weights import open_weights
from zoo.checkpoints.original import Unused, by_width, kept_headers, kept_tensors, original
from zoo.checkpoints.write import stored_tensors
from zoo.configs.exporting import NoFamilyError
from zoo.core.progress import Progress, Stage
from zoo.core.tensors import weight_tensors
from zoo.families.common.config import CONFIG
from zoo.families.common.tensors import Tensors
from zoo.families.own import OWN
from zoo.families.registry import family
from zoo.files.destination import CONVERSION
from zoo.weights.modules import ROUTES, SIDE_LAYERS, split_name
from zoo.weights.saving import SHARD, TensorHeader, save
from zoo.weights.source import WeightSource

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""The types that weights are written in, by the names of the command line."""


@dataclass(frozen=True)
class Conversion:
    """A written checkpoint: the class that loads it, its weights and files.

    ``class_name`` and ``model_type`` are None where no family can express the spec.
    """

    class_name: str | None
    model_type: str | None
    weights: str
    dtype: str
    parameters: int
    files: dict[str, int]
    loader: str | None = None
    """The class of transformers that loads it where that is not ``class_name``."""

    def as_dict(self) -> dict[str, Any]:
        """The conversion as JSON data."""
        return asdict(self)


def convert(
    spec: Model,
    weights: str,
    directory: Path,
    *,
    model_type: str | None = None,
    dtype: str = "fp32",
    seed: int = 0,
    shard: int = SHARD,
    progress: Progress = lambda stage: None,
) -> Conversion:
    """Write config, weights and tokenizer into an empty directory.

    The family is ``model_type``, that of the weights' checkpoint, or the first whose config can express the spec;
    ``weights`` are as for :func:`zoo.checkpoints.open_weights.open_weights`. Memory holds one stored tensor at a time. Raises
    :class:`specs.base.errors.UserError`.
    """
    origin = origin_of(weights)
    config = described(spec, origin, model_type)
    model = assemble(spec, DTYPES[dtype])
    source = open_weights(weights, model, spec, seed=seed, dtype=DTYPES[dtype])
    config, unused = original(spec, config, origin, source)
    contents = CheckpointContents(spec, model, source, origin, config, unused=unused)
    return contents.write(directory, dtype=dtype, shard=shard, progress=progress)


def described_if_any(spec: Model, origin: Path, model_type: str | None) -> dict[str, Any] | None:
    """Return the config of a spec as :func:`zoo.checkpoints.carried.described`, or None where no family can express it.

    Raises :class:`zoo.configs.exporting.NoFamilyError` for a ``model_type`` that cannot.
    """
    try:
        return described(spec, origin, model_type)
    except NoFamilyError:
        if model_type is not None:
            raise
        return None


@dataclass(frozen=True)
class CheckpointContents:
    """A module with its weights in ``source``, to be written with a config and the files at ``origin`` that accompany weights.

    ``names`` are those of the tensors (default: of the config's family). Without a ``config`` they are zoo's own. ``unused`` are
    further tensors to write.
    """

    spec: Model
    model: nn.Module
    source: WeightSource
    origin: Path
    config: dict[str, Any] | None = None
    names: Tensors | None = None
    unused: Unused = field(default_factory=dict)

    def write(
        self,
        directory: Path,
        *,
        dtype: str,
        shard: int = SHARD,
        progress: Progress = lambda stage: None,
    ) -> Conversion:
        """Write the checkpoint into an empty directory."""
        check_files(self.origin)
        texts: dict[str, Any] = {}
        if self.config is not None:
            config = {**self.config, "dtype": str(DTYPES[dtype]).removeprefix("torch.")}
            own = self.names is not None
            texts = {CONFIG: config} if own else config_files(self.spec, config, self.origin)
        _write_weights(*self._tensors(DTYPES[dtype]), directory, shard, progress)
        for name, data in texts.items():
            (directory / name).parent.mkdir(exist_ok=True, parents=True)
            _write_json(directory / name, data)
        carry_files(self.origin, directory)
        if ROUTES in texts:
            carry_static_queries(self.origin, directory)
        (directory / "spec.yaml").write_text(dump(resolved(self.spec)), encoding="utf-8")
        result = Conversion(
            class_name=None if self.config is None else self.config["architectures"][0],
            model_type=None if self.config is None else self.config["model_type"],
            weights=self.source.description,
            dtype=dtype,
            parameters=sum(parameter.numel() for parameter in self.model.parameters()),
            files={
                path.relative_to(directory).as_posix(): path.stat().st_size
                for path in sorted(directory.rglob("*"))
                if path.is_file()
            },
        )
        _write_json(directory / CONVERSION, result.as_dict())
        return result

    def _tensors(self, dtype: torch.dtype) -> tuple[dict[str, TensorHeader], Iterator[tuple[str, Tensor]]]:
        """The headers of all tensors in the order of the file, and the tensors, one at a time."""
        model, spec, names = self.model, self.spec, self.names
        if names is None:
            names = OWN if self.config is None else family(self.config["model_type"]).tensors.of(spec)
        layout = {name: TensorHeader(tuple(tensor.shape), tensor.dtype)
                  for name, tensor in stored_tensors(model, spec, names)}  # fmt: skip
        shapes = dict(weight_tensors(model))
        tensors = stored_tensors(model, spec, names, lambda name: self.source.whole(name, shapes[name]))
        return _ordered(layout, tensors, self.unused, dtype)


def _ordered(
    layout: dict[str, TensorHeader], tensors: Iterator[tuple[str, Tensor]], unused: Unused, dtype: torch.dtype
) -> tuple[dict[str, TensorHeader], Iterator[tuple[str, Tensor]]]:
    """All tensors in the order of the file: unused ones beside tensors of their width, and the heads last."""
    wide, narrow = by_width(unused, dtype)
    body = len([name for name in layout if not split_name(name)[0]])
    headers = {
        **kept_headers(wide, dtype),
        **dict(itertools.islice(layout.items(), body)),
        **kept_headers(narrow, dtype),
        **layout,
    }
    values = itertools.chain(
        kept_tensors(wide, dtype), itertools.islice(tensors, body), kept_tensors(narrow, dtype), tensors
    )
    return headers, values


def _write_weights(
    layout: dict[str, TensorHeader],
    tensors: Iterator[tuple[str, torch.Tensor]],
    directory: Path,
    shard: int,
    progress: Progress,
) -> None:
    """Write the body's tensors into the directory, and later modules' into their own directories."""
    done, total = 0, sum(entry.nbytes for entry in layout.values())

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(Stage("write weights", done, total))

    for folder, group in itertools.groupby(layout, key=lambda name: split_name(name)[0]):
        entries = {split_name(name)[1]: layout[name] for name in group}
        if folder in SIDE_LAYERS:
            held = itertools.islice(tensors, len(entries))
            torch.save({split_name(name)[1]: tensor for name, tensor in held}, directory / f"{folder}.pt")
            advance(sum(entry.nbytes for entry in entries.values()))
            continue
        (directory / folder).mkdir(exist_ok=True, parents=True)
        save(
            directory / folder,
            entries,
            ((split_name(name)[1], tensor) for name, tensor in tensors),
            advance,
            shard=shard,
        )


def _write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
