"""An exported directory as a PyTorch model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx

from exporters.export import Options, data_places
from exporters.runtime.exported import Exported
from exporters.stored_weights import alike, stored_weights
from specs.errors import UserError
from zoo.builder import ZooModel, assemble
from zoo.weights.materialize import put
from zoo.weights.tensors import weight_tensors


def reopened(exported: Exported) -> ZooModel:
    """The model in float32, with the weights that the data file holds: rounded, where the export rounded them.

    Where each lies is found as when it was written, and compared with what the graphs say.  Raises
    :class:`specs.errors.UserError` where the files are not as this version would write them.
    """
    options = Options(
        target=exported.target, precision=exported.precision, layout=exported.layout, **exported.options
    )
    model = assemble(exported.spec)
    waiting = dict(weight_tensors(model))
    if options.via == "fx":
        name, regions = data_places(exported.spec, options)
        places = {name: (region.offset, region.length) for name, region in regions.items()}
        if places == dict(_places(exported.graphs)):
            for weight, values in stored_weights(model, exported.directory / name, regions):
                before = waiting.pop(weight)
                put(model, {id(before): alike(before, values)})
    if waiting:
        raise UserError(
            f"{exported.directory}: its weights cannot be read back: it was written by --via torch, or another version\n"
            "  give its spec.yaml, and the checkpoint that it was made of with --weights"
        )
    return model


def _places(graphs: tuple[Path, ...]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Where each tensor of the data file lies, as the graphs say: offset and length in bytes."""
    for path in graphs:
        for tensor in onnx.load(path, load_external_data=False).graph.initializer:
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                said = {entry.key: entry.value for entry in tensor.external_data}
                yield tensor.name, (int(said["offset"]), int(said["length"]))
