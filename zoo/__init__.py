"""Transformers from declarative specs: the public Python API.

>>> import zoo
>>> spec = zoo.load("bert-base", ["position.kind=rope"])
>>> model = zoo.build(spec, weights="random")

Importing it is cheap: torch is loaded by the first function that needs it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from specs.model import Model
    from zoo.builder import ZooModel
    from zoo.checks import BehaviourReport, ShapeReport
    from zoo.reports.parameters import ParameterReport
    from zoo.reports.report import Report

__all__ = [
    "build",
    "check_behaviour",
    "check_shapes",
    "convert",
    "import_checkpoint",
    "load",
    "parameters",
    "presets",
    "report",
]


def presets() -> list[str]:
    """The names of the presets."""
    from specs.catalog import preset_names

    return preset_names()


def load(reference: str | os.PathLike[str], assignments: Sequence[str] = ()) -> Model:
    """The spec of a preset's name or a YAML file, with ``path=value`` assignments laid over it in order.

    Raises :class:`specs.errors.SpecError` with every problem found.
    """
    from specs.load import load as load_spec

    return load_spec(reference, assignments)


def build(
    spec: Model | str | os.PathLike[str],
    weights: str | None = None,
    *,
    seed: int = 0,
    dtype: torch.dtype | None = None,
) -> ZooModel:
    """The module of a spec (or of what ``load`` takes), in evaluation mode.

    Without ``weights`` it is on the meta device and takes no memory; ``weights`` is "random", drawn by the spec's
    recipe with ``seed``, the path of a checkpoint, or ``org/name`` on the Hugging Face hub.  ``dtype`` is float32
    unless given.  Raises :class:`specs.errors.UserError` for a wrong spec or wrong weights.
    """
    import torch

    from specs.model import Model
    from zoo.builder import assemble
    from zoo.weights.materialize import materialize
    from zoo.weights.open import open_weights

    described = spec if isinstance(spec, Model) else load(spec)
    model = assemble(described, dtype or torch.float32)
    if weights is not None:
        materialize(model, open_weights(weights, model, described, seed=seed, dtype=dtype or torch.float32))
    return model


def import_checkpoint(
    path: str | os.PathLike[str], *, name: str | None = None, strict: bool = False
) -> Model:
    """The spec of a Hugging Face checkpoint: of its directory, its config.json, or a GGUF file.

    Fields of the config that transformers does not have are passed over unless ``strict``.  Raises :class:`zoo.configs.config.ConfigError` for what is not modelled, with the field and the nearest that is.
    """
    from pathlib import Path

    from zoo.configs.importing import import_spec

    return import_spec(Path(path), name=name, strict=strict)


def convert(
    spec: Model,
    weights: str,
    directory: str | os.PathLike[str],
    *,
    family: str | None = None,
    dtype: str = "fp32",
) -> None:
    """Write a spec with its weights as a checkpoint that ``from_pretrained`` loads.

    The directory may be new, empty, or an earlier conversion, whose files are replaced; others in it are kept.

    ``family`` is a model_type (default: that of the weights, or the first, whose config can say all of the spec), ``dtype`` fp32, fp16 or
    bf16.  Raises :class:`specs.errors.UserError`, and then leaves nothing behind.
    """
    from pathlib import Path

    from zoo.checkpoints.converting import convert as convert_checkpoint
    from zoo.destination import CONVERSION, replacing

    with replacing(Path(directory), CONVERSION) as place:
        convert_checkpoint(spec, weights, place, model_type=family, dtype=dtype)


def parameters(spec: Model) -> ParameterReport:
    """The parameters of a spec's model, module by module, each counted once."""
    from zoo.reports.parameters import parameter_report

    return parameter_report(spec)


def report(
    spec: Model,
    *,
    batch: int = 1,
    length: int | None = None,
    past: int | None = None,
    source_length: int | None = None,
    precision: str = "fp16",
    devices: Sequence[str] = (),
) -> Report:
    """What a spec's model costs at some sizes: parameters by role, FLOPs, memory, training, and bounds on devices.

    ``precision`` is fp32, fp16 or bf16; ``devices`` are names, YAML files, or "this" for the machine at hand.
    Raises :class:`specs.errors.UserError` for sizes that the model does not take, and unknown devices.
    """
    from zoo.reports.report import Lengths
    from zoo.reports.report import report as report_on

    return report_on(spec, Lengths.of(spec, batch, length, past, source_length), precision, devices)


def check_shapes(spec: Model) -> ShapeReport:
    """What every module takes and gives, in symbols."""
    from zoo.checks import check_shapes as check

    return check(build(spec), spec)


def check_behaviour(spec: Model, *, seed: int = 0) -> BehaviourReport:
    """What a model must do whatever its weights: causality, padding, caches, cross-attention, gradients."""
    from zoo.checks import check_behaviour as check

    return check(spec, seed=seed)
