"""The adapters of an export: read with the request, written beside the graphs, and verified with the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from exporters.data.stored_weights import StoredWeight
from exporters.graph.builder import adapter_input
from exporters.quality.quality import Quality
from exporters.steps.options import ExportOptions
from exporters.verification.request import VerificationRequest
from specs.base.errors import UserError, option_name
from specs.base.roles import field_values
from specs.files.export_options import adapter_sources
from specs.model.model import Model
from zoo.builder import ZooModel
from zoo.checkpoints.low_rank import LowRankPair, add_changes, low_rank_pairs
from zoo.checkpoints.open_checkpoint import opened
from zoo.files.ownership import ADAPTER
from zoo.weights.hub import located_adapter
from zoo.weights.lora import LoraAdapter

_UNSUPPORTED = (
    ("via", "torch", "whose graphs are not ours"),
    ("precision", "bf16", "as NumPy has no type for its matrices"),
    ("target", "tensorrt", "whose engines take no matrices of rank 0"),
)
"""Options that adapters do not go with, and why."""


@dataclass(frozen=True)
class NamedAdapter:
    """An adapter of an export: its name, and its matrices by the weights that they change."""

    name: str
    pairs: Mapping[str, LowRankPair]

    def as_stored(self, matrices: Mapping[str, np.ndarray]) -> dict[str, LowRankPair]:
        """The pairs with the values that the adapter's file holds, by the names of the graph's inputs."""
        held = {name: torch.from_numpy(matrix).float() for name, matrix in matrices.items()}
        return {weight: LowRankPair(*(held[name] for name in _inputs(weight))) for weight in self.pairs}

    def matrices(self) -> dict[str, np.ndarray]:
        """The matrices in float32 by the names of the graph's inputs."""
        held: dict[str, np.ndarray] = {}
        for weight, pair in self.pairs.items():
            held |= dict(zip(_inputs(weight), (pair.down.numpy(), pair.up.numpy()), strict=True))
        return held


@dataclass(frozen=True)
class VerifiedAdapter:
    """The largest difference of the outputs with an adapter, None where it was not verified, and its quality, if rounding was judged."""

    largest: float | None = None
    quality: Quality | None = None


def _inputs(weight: str) -> tuple[str, str]:
    """The inputs of a graph for the two matrices of a weight."""
    return adapter_input(weight, "down"), adapter_input(weight, "up")


def read_adapters(options: ExportOptions, model: ZooModel, spec: Model) -> tuple[NamedAdapter, ...]:
    """The adapters that the options name.  Raises :class:`specs.base.errors.UserError`."""
    check_options(options)
    files, names = opened(options.weights, model, spec)
    opened_adapters = {
        name: LoraAdapter.open(located_adapter(source))
        for name, source in adapter_sources(options.adapters).items()
    }
    return tuple(
        NamedAdapter(name, low_rank_pairs(adapter, files, names, model, spec))
        for name, adapter in opened_adapters.items()
    )


def check_options(options: ExportOptions) -> None:
    """Raise :class:`specs.base.errors.UserError` where other options exclude adapters."""
    if not options.adapters:
        return
    option = option_name("adapters")
    if not options.real:
        raise UserError(
            f"{option} cannot be used without the weights of the base model\n  value: {options.weights} weights\n  Pass {option_name('weights')}."
        )
    for name, value, why in _UNSUPPORTED:
        if field_values(options)[name] == value:
            raise UserError(
                f"{option} cannot be used with {option_name(name)} {value}, {why}\n  Leave one of them out."
            )


def check_adapters(adapters: Sequence[NamedAdapter], inputs: Sequence[str]) -> None:
    """Raise :class:`specs.base.errors.UserError` where an adapter changes a weight that no product of the graphs reads alone."""
    for adapter in adapters:
        missing = [weight for weight in adapter.pairs if _inputs(weight)[1] not in inputs]
        if missing:
            raise UserError(
                f"The adapter {adapter.name} changes {missing[0]}, which is not the matrix of a product in the graphs\n"
                "  Merge it into the model: zoo adapt BASE --merge DIR."
            )


def write_adapters(
    directory: Path, adapters: Sequence[NamedAdapter], dtype: torch.dtype
) -> dict[str, dict[str, np.ndarray]]:
    """Write each adapter to a file, and return what the files hold, by the names of the adapters."""
    from onnxruntime import AdapterFormat, OrtValue

    written = {}
    for adapter in adapters:
        path = directory / f"{adapter.name}{ADAPTER}"
        kind = np.float16 if dtype == torch.float16 else np.float32
        form = AdapterFormat()
        form.set_adapter_version(1)
        form.set_model_version(1)
        arrays = {
            name: np.ascontiguousarray(array.astype(kind)) for name, array in adapter.matrices().items()
        }
        form.set_parameters({name: OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()})
        form.export_adapter(str(path))
        written[adapter.name] = read_adapter(path)
    return written


def read_adapter(path: Path) -> dict[str, np.ndarray]:
    """The matrices in a file, by the names of the graph's inputs."""
    from onnxruntime import AdapterFormat

    form = AdapterFormat.read_adapter(str(path))
    return {name: np.array(value.numpy()) for name, value in form.get_parameters().items()}


def with_adapter(
    request: VerificationRequest, adapter: NamedAdapter, matrices: Mapping[str, np.ndarray]
) -> VerificationRequest:
    """The request to verify the files with an adapter against the model with the changes that its file holds."""
    base, stored_pairs = request.take_stored, adapter.as_stored(matrices)

    def take(model: ZooModel) -> Mapping[str, StoredWeight]:
        stored = {} if base is None else base(model)
        add_changes(model, stored_pairs)
        return stored

    subject = f"{request.subject} with the adapter {adapter.name}"
    return replace(request, take_stored=take, adapter=matrices, subject=subject)
