"""An exported directory as a PyTorch model."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from torch import Tensor

from exporters.digests import Place, external_places
from exporters.layouts import LAYOUTS
from exporters.options import Options
from exporters.plan import data_places
from exporters.precisions import PRECISIONS
from exporters.runtime.exported import Exported
from exporters.stored_weights import alike, stored_weights
from exporters.targets import TARGETS
from specs.errors import UserError, option_name
from zoo.builder import ZooModel, assemble
from zoo.destination import MANIFEST
from zoo.tensors import weight_tensors
from zoo.weights.materialize import put


def reopened(exported: Exported) -> ZooModel:
    """The model in float32, with the weights that the data file holds: rounded, where the export rounded them.

    Where each lies is found as when it was written, and compared with what the graphs say.  Raises
    :class:`specs.errors.UserError` where the files are not as this version would write them.
    """
    model = assemble(exported.spec)
    waiting = dict(weight_tensors(model))
    for weight, values in weights_of(exported, model):
        before = waiting.pop(weight)
        put(model, {id(before): alike(before, values)})
    if waiting:
        raise _unreadable(exported)
    return model


def weights_of(exported: Exported, model: ZooModel) -> Iterator[tuple[str, Tensor]]:
    """The weights that the data file holds, by name and in the shapes of the model, in float32.

    Raises :class:`specs.errors.UserError` where the files are not as this version would write them.
    """
    options = options_of(exported)
    if options.via != "fx":
        raise _unreadable(exported)
    name, regions = data_places(exported.spec, options, exported.manifest.quantized, exported.manifest.mixed)
    if {name: (region.offset, region.length) for name, region in regions.items()} != _places(exported):
        raise _unreadable(exported)
    return stored_weights(model, exported.directory / name, regions)


def _unreadable(exported: Exported) -> UserError:
    return UserError(
        f"{exported.directory}: its weights cannot be read back: it was written by {option_name('via')} torch, or another version\n"
        f"  give its spec.yaml, and the checkpoint that it was made of with {option_name('weights')}"
    )


def options_of(exported: Exported) -> Options:
    """How it was exported."""
    manifest = exported.manifest
    for name, value, known in (
        ("target", manifest.target, TARGETS),
        ("precision", manifest.precision, PRECISIONS),
        ("layout", manifest.layout, LAYOUTS),
    ):
        if value not in known:
            raise UserError(
                f"{exported.directory / MANIFEST}: {name}: must be one of {', '.join(known)}\n"
                f"  value: {value!r}\n  export the model again"
            )
    return Options(
        target=manifest.target,
        precision=manifest.precision,
        layout=manifest.layout,
        **manifest.options.model_dump(),
    )


def _places(exported: Exported) -> dict[str, Place]:
    """Where each tensor of the data file lies, as the graphs say."""
    try:
        graphs = {path.name: onnx.load(path, load_external_data=False) for path in exported.graphs}
        files = external_places(graphs).values()
    except (DecodeError, KeyError, ValueError) as error:
        raise UserError(
            f"{exported.directory}: its graphs cannot be read: {error}\n"
            "  copy the directory again, or export the model again"
        ) from None
    return {name: place for places in files for name, place in places.items()}
