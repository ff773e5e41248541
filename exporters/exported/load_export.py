"""An exported directory as a PyTorch model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import onnx
import torch
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from torch import Tensor

from exporters.data.data_file import Region
from exporters.data.digests import ByteRange, external_places
from exporters.data.mixed_bits import recorded_blocks
from exporters.data.stored_weights import alike, stored_weights
from exporters.graph.precisions import PRECISIONS
from exporters.layouts import LAYOUTS
from exporters.runtime.exported import Exported
from exporters.steps.graphs import Graphs
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from exporters.target.targets import TARGETS
from specs.base.errors import UserError, option_name
from zoo.builder import ZooModel, assemble
from zoo.core.facts import UNSTORED_ZEROS
from zoo.core.tensors import weight_tensors
from zoo.files.destination import MANIFEST
from zoo.weights.materialize import put


def load_export(exported: Exported) -> ZooModel:
    """Return the model in float32 with the weights in the data file, including their rounding error.

    The locations of the weights are recomputed and compared with those in the graphs. Raises
    :class:`specs.base.errors.UserError` where this version would write the files differently.
    """
    model = assemble(exported.spec)
    waiting = dict(weight_tensors(model))
    for weight, values in weights_of(exported, model):
        before = waiting.pop(weight)
        put(model, {id(before): alike(before, values)})
    for path, module in model.named_modules():
        for leaf in UNSTORED_ZEROS.of(module):
            before = waiting.pop(f"{path}.{leaf}")
            put(model, {id(before): torch.zeros(before.shape)})
    if waiting:
        raise _unreadable(exported)
    return model


def weights_of(exported: Exported, model: ZooModel) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights in the data file by name, in the shapes of the model, in float32.

    Raises :class:`specs.base.errors.UserError` where this version would write the files differently.
    """
    readable = readable_regions(exported)
    if readable is None:
        raise _unreadable(exported)
    name, regions = readable
    return stored_weights(model, exported.directory / name, regions)


def readable_regions(exported: Exported) -> tuple[str, Mapping[str, Region]] | None:
    """The path of the data file and the region of each weight; None where this version would lay it out differently."""
    options = options_of(exported)
    if options.via != "fx":
        return None
    plan = plan_of_export(exported, options)
    name, regions = plan.data_paths[0], Graphs.of(plan).regions
    written = {name: (region.offset, region.length) for name, region in regions.items()} == _places(exported)
    return (name, regions) if written else None


def plan_of_export(exported: Exported, options: ExportOptions) -> Plan:
    """The plan that an export with these options was written from."""
    manifest = exported.manifest
    plan = Plan.make(exported.spec, options)
    return replace(plan, quantized=manifest.quantized, more_bits=recorded_blocks(manifest.mixed))


def _unreadable(exported: Exported) -> UserError:
    return UserError(
        f"{exported.directory}: weights can only be read from exports that this version wrote with {option_name('via')} fx\n"
        f"  Pass its spec.yaml, and the checkpoint that it was made from as {option_name('weights')}."
    )


def options_of(exported: Exported) -> ExportOptions:
    """The options of the export."""
    manifest = exported.manifest
    for name, value, known in (
        ("target", manifest.target, TARGETS),
        ("precision", manifest.precision, PRECISIONS),
        ("layout", manifest.layout, LAYOUTS),
    ):
        if value not in known:
            raise UserError(
                f"{exported.directory / MANIFEST}: {name}: must be one of {', '.join(known)}\n"
                f"  value: {value!r}\n  Export the model again."
            )
    places = {"target": manifest.target, "precision": manifest.precision, "layout": manifest.layout}
    return ExportOptions.of(**places, **manifest.options.model_dump())


def _places(exported: Exported) -> dict[str, ByteRange]:
    """The place of each tensor in the data file, as the graphs declare it."""
    try:
        graphs = {path.name: onnx.load(path, load_external_data=False) for path in exported.graphs}
        files = external_places(graphs).values()
    except (DecodeError, KeyError, ValueError) as error:
        raise UserError(
            f"{exported.directory}: the graphs cannot be read: {error}\n"
            "  Copy the directory again, or export the model again."
        ) from None
    return {name: span for places in files for name, span in places.items()}
