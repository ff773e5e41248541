"""Detection of a checkpoint's family."""

from __future__ import annotations

import os
from pathlib import Path

from torch import nn

from specs.base.suggest import suggestion
from specs.model.model import Model
from zoo.checkpoints.gguf import as_gguf
from zoo.core.tensors import weight_tensors
from zoo.families.common.tensors import Tensors
from zoo.families.registry import family, has_tensors, model_types, tensor_names
from zoo.files.json_values import read_object
from zoo.weights.files import TensorFiles
from zoo.weights.gguf import GgufTensor
from zoo.weights.gguf_header import model_type_of
from zoo.weights.source import WeightError


def family_of(files: TensorFiles, model: nn.Module, spec: Model) -> Tensors:
    """Return the family of a checkpoint, from a GGUF file or a config.json, or else from the names of its tensors.

    Raises :class:`WeightError` where it cannot be determined.
    """
    first = next(iter(files.tensors.values()), None)
    if isinstance(first, GgufTensor):
        names = _of_model_type(model_type_of(first.header), first.path)
        return as_gguf(names, first.header, spec)
    config = files.path / "config.json"
    if os.path.lexists(config):
        return _of_model_type(read_object(config, WeightError, config.parent).get("model_type"), config)
    shapes = {name: tuple(tensor.shape) for name, tensor in weight_tensors(model)}

    def names_found(names: Tensors) -> float:
        plain = {names.plain(name) for name in files.tensors}
        table = names.table(spec, shapes)
        return sum(not plain.isdisjoint(names) for names in table.names()) / len(shapes)

    tables = tensor_names()
    best = max(tables, key=names_found)  # the first of equals
    if names_found(best) < 0.5:
        seen = ", ".join(sorted(files.tensors)[:8]) or "no tensors"
        known = ", ".join(table.name for table in tables)
        raise WeightError(
            f"{files.path} has tensor names of no known family ({known}) for this spec: {seen}, ..."
        )
    return best


def _of_model_type(model_type: object, where: Path) -> Tensors:
    if not isinstance(model_type, str) or not has_tensors(model_type):
        remedy = suggestion(str(model_type), model_types())
        raise WeightError(f"{where}: weights of model_type {model_type!r} cannot be read\n  {remedy}")
    return family(model_type).tensors
