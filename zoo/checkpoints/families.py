"""Detection of a checkpoint's family."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import nn

from specs.base.suggest import suggestion
from specs.model.model import Model
from zoo.checkpoints.gguf import as_gguf
from zoo.core.tensors import weight_tensors
from zoo.families.alike import text_names
from zoo.families.common.tensors import Tensors, layers_with
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
    type_name = (
        read_object(config, WeightError, config.parent).get("model_type") if os.path.lexists(config) else None
    )
    if isinstance(type_name, str) and has_tensors(type_name):
        return family(type_name).tensors.of(spec)
    shapes = {name: tuple(tensor.shape) for name, tensor in weight_tensors(model)}

    def names_found(names: Tensors) -> float:
        plain = {names.plain(name) for name in files.tensors}
        table = names.table(spec, shapes)
        return sum(not plain.isdisjoint(names) for names in table.names()) / len(shapes)

    tables = tensor_names()
    if type_name is not None:
        return _of_all_names(
            type_name, config, [table for table in tables if names_found(table) == 1.0], spec, shapes
        )
    best = max(tables, key=names_found)  # the first of equals
    if names_found(best) < 0.5:
        seen = ", ".join(sorted(files.tensors)[:8]) or "no tensors"
        known = ", ".join(table.name for table in tables)
        raise WeightError(
            f"{files.path} has tensor names of no known family ({known}) for this spec: {seen}, ..."
        )
    return best


def text_model_files(files: TensorFiles) -> TensorFiles:
    """Return the tensors of the text model, of a checkpoint whose other parts are not supported; otherwise all of them."""
    config = files.path / "config.json"
    if not os.path.lexists(config):
        return files
    data = read_object(config, WeightError, config.parent)
    if "text_config" not in data or has_tensors(data.get("model_type")):
        return files
    names = text_names(files.tensors)
    return TensorFiles(files.path, {plain: files.tensors[stored] for plain, stored in names.items()})


def module_files(files: TensorFiles, names: Tensors) -> TensorFiles:
    """Return the tensors of a checkpoint with layers counted from the first that a table names, without the layers before it."""
    first = min(layers_with(names.first_layer, map(names.plain, files.tensors)), key=len, default="")
    if not first or first == "layers.0.":
        return files
    kept = {}
    for stored, tensor in files.tensors.items():
        plain = names.plain(stored)
        if plain.startswith(first):
            kept[f"layers.0.{plain.removeprefix(first)}"] = tensor
        elif not plain.startswith("layers."):
            kept[stored] = tensor
    return TensorFiles(files.path, kept)


def _of_all_names(
    type_name: object,
    where: Path,
    tables: Sequence[Tensors],
    spec: Model,
    shapes: Mapping[str, tuple[int, ...]],
) -> Tensors:
    """Return the table that names all tensors of a checkpoint whose config states an unknown type.

    Raises :class:`WeightError` without one, and where several disagree on what their tensors hold.
    """
    if not tables:
        return _of_model_type(type_name, where)
    first, *others = (table.table(spec, shapes) for table in tables)
    for other, table in zip(others, tables[1:], strict=True):
        slots = ((first.find(name), other.find(name)) for name in shapes)
        if any(one and two and one.transform != two.transform for one, two in slots):
            raise WeightError(
                f"{where}: model_type {type_name!r} is unknown: {tables[0].name} and {table.name} name the tensors alike, in "
                f"different layouts\n  Set model_type to one of them."
            )
    return tables[0]


def _of_model_type(model_type: object, where: Path) -> Tensors:
    if not isinstance(model_type, str) or not has_tensors(model_type):
        remedy = suggestion(str(model_type), model_types())
        raise WeightError(f"{where}: weights of model_type {model_type!r} cannot be read\n  {remedy}")
    return family(model_type).tensors
