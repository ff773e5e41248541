"""Transformers from declarative specs: the public Python API.

>>> import zoo
>>> spec = zoo.load("bert-base", ["position.kind=rope"])
>>> model = zoo.build(spec, weights="random")

Wherever a spec is taken, so is a preset's name, the path of a YAML file or a checkpoint, or ``org/name`` on the hub.  Importing
it is cheap: torch is loaded by the first function that needs it.  Results print as tables, in notebooks too.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from zoo.own_packages import prepare

prepare()

if TYPE_CHECKING:
    from typing import Any, Unpack

    import torch
    from torch.distributed.device_mesh import DeviceMesh
    from torch.optim import Optimizer

    from exporters.exported.verify_export import ExportVerification
    from exporters.graph.checking import InvalidGraphError
    from exporters.quality.quality import QualityError
    from exporters.steps.manifest import Export
    from exporters.verification.module_checks import BehaviourError
    from exporters.verification.result import VerificationError
    from specs.base.errors import PluginError, SpecError, UserError
    from specs.files.export_keywords import ExportKeywords
    from specs.language.catalog import Presets
    from specs.model.model import Model
    from zoo.adapting.adapt import Adaptation
    from zoo.builder import ZooModel
    from zoo.checks import Checks
    from zoo.core.progress import Progress
    from zoo.drawing import Picture
    from zoo.families.common.config_errors import ConfigError
    from zoo.parallel.mesh import FsdpKeywords
    from zoo.parallel.pipeline import StageModule
    from zoo.parallel.plan import ParallelPlan
    from zoo.reports.difference import ModelDifference
    from zoo.reports.parameters import ParameterReport
    from zoo.reports.report import Report
    from zoo.weights.source import WeightError

    Spec = Model | str | os.PathLike[str]

_ELSEWHERE = {
    "BehaviourError": "exporters.verification.module_checks",
    "ConfigError": "zoo.families.common.config_errors",
    "Export": "exporters.steps.manifest",
    "ExportKeywords": "specs.files.export_keywords",
    "ExportVerification": "exporters.exported.verify_export",
    "InvalidGraphError": "exporters.graph.checking",
    "Model": "specs.model.model",
    "PluginError": "specs.base.errors",
    "QualityError": "exporters.quality.quality",
    "SpecError": "specs.base.errors",
    "UserError": "specs.base.errors",
    "VerificationError": "exporters.verification.result",
    "WeightError": "zoo.weights.source",
}
"""Where the types are defined that functions here return and raise."""

__all__ = [
    "BehaviourError",
    "ConfigError",
    "Export",
    "ExportKeywords",
    "ExportVerification",
    "InvalidGraphError",
    "Model",
    "PluginError",
    "QualityError",
    "SpecError",
    "UserError",
    "VerificationError",
    "WeightError",
    "adapt",
    "build",
    "check",
    "convert",
    "diff",
    "draw",
    "export",
    "import_checkpoint",
    "load",
    "load_checkpoint",
    "parallel_plan",
    "parallelize",
    "parameters",
    "presets",
    "report",
    "save_checkpoint",
    "verify",
]


if TYPE_CHECKING:
    __version__: str
else:  # type checkers do not see it, and so report misspelt names

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("zoo")
        if name in _ELSEWHERE:
            return getattr(importlib.import_module(_ELSEWHERE[name]), name)
        raise AttributeError(f"module 'zoo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _spec(spec: Spec) -> Model:
    """A spec, read where it is a reference."""
    from specs.model.model import Model

    return spec if isinstance(spec, Model) else load(spec)


def _own_weights(spec: Spec) -> str | None:
    """The weights of a checkpoint that is named in the place of a spec."""
    from specs.model.model import Model
    from zoo.configs.named_model import named_model

    return None if isinstance(spec, Model) else named_model(spec).default_weights()


def presets(
    *words: str,
    architecture: str | None = None,
    min_parameters: float | None = None,
    max_parameters: float | None = None,
    since: int | None = None,
    until: int | None = None,
) -> Presets:
    """The presets that match all words and bounds: records with name, parameters, year, features and tasks.

    Words are sought as ``zoo list`` does: ``zoo.presets("moe", max_parameters=30e9)``.
    """
    from specs.language.catalog import presets as matching

    return matching(
        *words,
        architecture=architecture,
        min_parameters=min_parameters,
        max_parameters=max_parameters,
        since=since,
        until=until,
    )


def load(
    reference: str | os.PathLike[str], assignments: Sequence[str] = (), *, family: str | None = None
) -> Model:
    """The spec of a preset, a YAML file, a checkpoint (its directory, config.json or GGUF file), a repository ``org/name`` of the
    Hugging Face hub or an export, with ``path=value`` assignments applied in order.

    A checkpoint whose model_type is unknown is read as one of the ``family``.  Raises
    :class:`specs.base.errors.SpecError` with every problem found.
    """
    from zoo.configs.named_model import named_model

    return named_model(reference, assignments, family=family).spec


def build(
    spec: Spec,
    weights: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    dtype: torch.dtype | None = None,
) -> ZooModel:
    """The module of a spec, in evaluation mode.

    Without ``weights`` it is on the meta device and takes no memory; ``weights`` is "random", drawn by the spec's
    recipe with ``seed``, the path of a checkpoint, or ``org/name`` on the Hugging Face hub.  A checkpoint that is named in the
    place of a spec brings its own; ``zoo.build(zoo.load(path))`` leaves them.  ``dtype`` is float32 unless given.  Raises :class:`specs.base.errors.UserError` for a wrong spec or wrong weights.
    """
    import torch

    from zoo.builder import assemble
    from zoo.checkpoints.open_weights import open_weights
    from zoo.weights.materialize import materialize

    described = _spec(spec)
    weights = _own_weights(spec) if weights is None else weights
    model = assemble(described, dtype or torch.float32)
    if weights is not None:
        source = open_weights(os.fspath(weights), model, described, seed=seed, dtype=dtype or torch.float32)
        materialize(model, source)
    return model


def import_checkpoint(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    strict: bool = False,
    family: str | None = None,
) -> Model:
    """The spec of a Hugging Face checkpoint: of its directory, its config.json, or a GGUF file.

    Fields of the config that transformers does not have are passed over unless ``strict``.  A config whose model_type is unknown
    is read as one of the ``family``.  Raises
    :class:`zoo.families.common.config_errors.ConfigError` for unsupported fields, with a suggestion.
    """
    from pathlib import Path

    from zoo.configs.importing import import_spec

    return import_spec(Path(path), name=name, strict=strict, family=family)


def convert(
    spec: Spec,
    weights: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    family: str | None = None,
    dtype: str = "fp32",
    remote_code: bool = False,
) -> None:
    """Write a spec with its weights as a checkpoint that ``from_pretrained`` loads.

    The directory may be new, empty, or an earlier conversion, whose files are replaced; others in it are kept.

    ``family`` is a model_type (default: that of the weights, or the first, whose config can say all of the spec),
    ``dtype`` fp32, fp16 or bf16.  With ``remote_code`` the model's own code is written in the place of a family, and
    ``from_pretrained`` needs ``trust_remote_code=True``.  Raises :class:`specs.base.errors.UserError`, and then leaves nothing behind.
    """
    from pathlib import Path

    from zoo.checkpoints.converting import convert as convert_checkpoint
    from zoo.files.destination import CONVERSION, replacing
    from zoo.remote_code.write import convert_with_code

    with replacing(Path(directory), CONVERSION) as output:
        if remote_code:
            convert_with_code(_spec(spec), os.fspath(weights), output, dtype=dtype)
            return
        convert_checkpoint(_spec(spec), os.fspath(weights), output, model_type=family, dtype=dtype)


def adapt(
    spec: Spec,
    weights: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    source: str | None = None,
    layers: Sequence[str] = (),
    merge: str | os.PathLike[str] | None = None,
    family: str | None = None,
    dtype: str = "fp32",
    seed: int = 0,
) -> Adaptation:
    """Write a checkpoint of a spec whose weights are derived from another spec's weights, as far as rules allow.

    ``weights`` is a checkpoint, ``source`` its spec (default: that of its config), ``layers`` say which of its layers become those
    of the spec, such as ``["0-23,8-31"]`` (default: evenly spaced), and ``merge`` is a LoRA adapter of PEFT for them; ``directory``, ``family`` and ``dtype`` are as for
    :func:`convert`. Weights that cannot be derived are drawn with ``seed``. The result has the origin of every tensor.
    Raises :class:`specs.base.errors.UserError`, and then leaves nothing behind.
    """
    from pathlib import Path

    from zoo.adapting.adapt import AdaptedModel
    from zoo.files.destination import CONVERSION, replacing

    with replacing(Path(directory), CONVERSION) as output:
        adapted = AdaptedModel.of(
            _spec(spec),
            os.fspath(weights),
            source=source,
            layers=layers,
            merge=None if merge is None else os.fspath(merge),
            model_type=family,
            dtype=dtype,
            seed=seed,
        )
        return adapted.write(output)


def parameters(spec: Spec) -> ParameterReport:
    """The parameters of a spec's model, module by module, each counted once."""
    from zoo.reports.parameters import parameter_report

    return parameter_report(_spec(spec))


def report(
    spec: Spec,
    *,
    batch: int = 1,
    length: int | None = None,
    past: int | None = None,
    source_length: int | None = None,
    precision: str = "fp16",
    devices: Sequence[str] = (),
) -> Report:
    """The costs of a spec's model at some sizes: parameters by role, FLOPs, memory, training, and bounds on devices.

    ``precision`` is fp32, fp16 or bf16; ``devices`` are names, YAML files, or "this" for the machine at hand.
    Raises :class:`specs.base.errors.UserError` for sizes that the model does not take, and unknown devices.
    """
    from zoo.reports.lengths import Lengths
    from zoo.reports.report import report as report_on

    described = _spec(spec)
    return report_on(described, Lengths.of(described, batch, length, past, source_length), precision, devices)


def check(spec: Spec, weights: str | os.PathLike[str] | None = None, *, seed: int = 0) -> Checks:
    """The shapes of all modules, and what a model must do whatever its weights: causality, padding, caches, cross-attention,
    gradients.

    ``weights`` are a path or "random", by the spec's recipe (default: those of a checkpoint, or random ones drawn for checking).
    """
    from zoo.checkpoints.open_weights import open_weights
    from zoo.checks import Checks, check_behaviour, check_shapes

    described = _spec(spec)
    weights = _own_weights(spec) if weights is None else weights
    model = build(described)
    source = None if weights is None else open_weights(os.fspath(weights), model, described, seed=seed)
    shapes = check_shapes(model, described)
    return Checks(
        described.name, shapes, check_behaviour(described, source, seed=seed) if shapes.passed else None
    )


def export(
    model: Spec | ZooModel,
    directory: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    **options: Unpack[ExportKeywords],
) -> Export:
    """Write ONNX files whose outputs are verified against PyTorch, and return their records.

    ``model`` is a spec, or a module that :func:`build` returned, which is exported with its own weights, trained or not.
    The directory appears once all has passed.  ``progress`` is called with each step.

    Options, all with defaults (``zoo export --help-all`` describes each):

    - weights, unless ``model`` is a module: ``weights``, ``seed``
    - runtime: ``target``, ``layout``, ``provider``, ``opset``, ``via``, ``logits``, ``outputs``, ``cuda_graph``, ``adapters``
    - precision: ``precision``, ``cache_precision``, ``cache_length``, ``window_cache``, ``activations``, ``rounding``, ``budget``,
      ``block_size``, ``asymmetric``, ``head_precision``
    - checks: ``verify``, ``engines``, ``calibrate``, ``max_kl``, ``min_cosine``

    Raises :class:`specs.base.errors.UserError` for invalid input,
    :class:`exporters.verification.module_checks.BehaviourError` if the model does not behave as its spec says,
    :class:`exporters.verification.result.VerificationError` if the files do not compute what the model computes, and
    :class:`exporters.quality.quality.QualityError` if rounding loses more than allowed.
    """
    from pathlib import Path

    from torch import nn

    from exporters.export import export as export_files
    from exporters.export import export_module
    from exporters.steps.options import ExportOptions
    from specs.base.errors import UserError

    tell = progress or (lambda stage: None)
    if isinstance(model, nn.Module):
        if "weights" in options:
            raise UserError(
                "A module is exported with its own weights\n  Leave weights out, or export the module's spec."
            )
        return export_module(model, Path(directory), ExportOptions.of(**options, weights="module"), tell)
    if "weights" not in options:
        options["weights"] = _own_weights(model) or "random"
    return export_files(_spec(model), Path(directory), ExportOptions.of(**options), tell)


def verify(
    directory: str | os.PathLike[str], *, engines: Sequence[str] = (), progress: Progress | None = None
) -> ExportVerification:
    """Verify an exported directory where it is now, such as on the machine that it was copied to.

    The files are compared with their recorded digests, and the graphs in ONNX Runtime, and in ``engines``, with PyTorch on the
    weights of the files.  Raises :class:`specs.base.errors.UserError` for a directory that is not an export.
    """
    from pathlib import Path

    from exporters.exported.verify_export import verify_export

    return verify_export(Path(directory), progress or (lambda stage: None), engines)


def diff(a: Spec, b: Spec, *, batch: int = 1, length: int | None = None) -> ModelDifference:
    """The differences between two specs, module by module, and in their costs.

    A side may also be the path of an exported directory or of a checkpoint.  Raises :class:`specs.base.errors.UserError`.
    """
    from zoo.reports.difference import compare_models
    from zoo.reports.side import side_of
    from zoo.reports.spec_difference import compare_specs

    return compare_models(compare_specs(side_of(a), side_of(b)), batch=batch, length=length)


def draw(spec: Spec) -> Picture:
    """The architecture as a figure: notebooks show it, and ``save`` writes it as .svg, .png or .md (Mermaid)."""
    from zoo.drawing import Picture

    return Picture(_spec(spec))


def parallel_plan(spec: Spec) -> ParallelPlan:
    """How a spec's model is cut among processes, as its components state it.

    ``plan.tensor_parallel(degree)`` is the plan for ``torch.distributed.tensor.parallel.parallelize_module``,
    ``plan.hugging_face()`` has the ``tp_plan`` and ``pp_plan`` of a config, ``plan.wrapped`` are the block classes that FSDP,
    Accelerate and DeepSpeed wrap.
    """
    from zoo.parallel.plan import parallel_plan as plan

    return plan(_spec(spec))


def parallelize(
    model: ZooModel,
    mesh: DeviceMesh,
    *,
    weights: str | None = None,
    seed: int = 0,
    sequence: bool = False,
    recompute: bool = False,
    **fsdp: Unpack[FsdpKeywords],
) -> ZooModel | StageModule:
    """Cut a model along the named dims of a device mesh, in place, and return it.

    ``tp``: tensor parallelism, which also cuts the stream between the layers by tokens with ``sequence``; ``dp``: FSDP2, with
    the options of ``torch.distributed.fsdp.fully_shard``; ``pp``: this process's stage of a pipeline is returned.
    ``recompute`` keeps the inputs of layers alone for the backward pass (activation checkpointing).

    Every process calls it with the same weights, or with a model on the meta device.  ``weights`` are those of
    :func:`build`: each process reads, or draws, its own shards alone.  Raises :class:`specs.base.errors.UserError` for dims of
    other names, and degrees that do not fit.
    """
    from zoo.parallel.parallelize import parallelize as cut

    return cut(model, mesh, weights=weights, seed=seed, sequence=sequence, recompute=recompute, **fsdp)


def save_checkpoint(
    model: ZooModel | StageModule, directory: str | os.PathLike[str], optimizer: Optimizer | None = None
) -> None:
    """Write the shards of all processes as a checkpoint of ``torch.distributed.checkpoint``, with the spec.

    Any number of processes can load it, and ``zoo convert`` and ``zoo export`` read it.
    """
    from pathlib import Path

    from zoo.parallel.checkpoint import save_checkpoint as save

    save(model, Path(directory), optimizer)


def load_checkpoint(
    model: ZooModel | StageModule, directory: str | os.PathLike[str], optimizer: Optimizer | None = None
) -> None:
    """Read the shards of this process, of its model and optimizer, in place.

    Raises :class:`specs.base.errors.UserError` for a directory without a checkpoint, and for one of another spec.
    """
    from pathlib import Path

    from zoo.parallel.checkpoint import load_checkpoint as load

    load(model, Path(directory), optimizer)
