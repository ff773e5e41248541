"""From a spec to a verified directory of ONNX files."""

from __future__ import annotations

from pathlib import Path

from exporters.data.data_file import total_bytes
from exporters.data.digests import external_places, followed
from exporters.data.weight_files import places_of
from exporters.graph.trace import write_graphs
from exporters.steps.manifest import Export
from exporters.steps.options import DEFAULTS, ExportOptions
from exporters.steps.plan import ExportPlan
from exporters.steps.preconditions import check_captured, check_exportable, check_options, check_tensors
from exporters.steps.publish import metadata, publish
from exporters.steps.verify import Proven, verified, write_and_prove
from exporters.steps.via_torch.export import export_via_torch
from exporters.steps.weight_preparation import Contents, prepared, traced
from exporters.verification.module_checks import check_module
from exporters.verification.reference import reference_of
from exporters.verification.verified_model import Subject
from specs.base.errors import UserError
from specs.model.model import Model
from zoo.builder import ZooModel
from zoo.core.progress import Progress, Stage
from zoo.files.destination import check_destination, replacing
from zoo.weights.held import HeldWeights
from zoo.weights.source import WeightSource


def export(
    spec: Model,
    destination: Path,
    options: ExportOptions = DEFAULTS,
    progress: Progress = lambda stage: None,
) -> Export:
    """Write the ONNX files of a spec to a directory, which appears once they are verified.

    Raises :class:`specs.base.errors.UserError` for invalid input, :class:`exporters.verification.module_checks.BehaviourError` where the
    model does not behave as its spec says, :class:`exporters.verification.result.VerificationError` where the files do not
    compute what the model computes, :class:`exporters.quality.quality.QualityError` where rounding
    loses more than allowed, and :class:`exporters.graph.checking.InvalidGraphError` where a graph is not valid ONNX.
    """
    plan = ExportPlan.make(spec, options)
    source = check_exportable(plan.model, spec, destination, options)
    return _written(plan.with_weights(source), source, destination, progress)


def export_module(
    model: ZooModel, destination: Path, options: ExportOptions, progress: Progress = lambda stage: None
) -> Export:
    """Export a module that was built from a spec, with the weights that it holds."""
    if next(model.parameters()).is_meta:
        raise UserError("This module has no weights\n  Build it with weights, or export its spec.")
    plan = ExportPlan.make(model.spec, options)
    source = HeldWeights(model)
    check_options(plan.model, plan.spec, options)
    return _written(plan, source, destination, progress)


def _written(plan: ExportPlan, source: WeightSource | None, destination: Path, progress: Progress) -> Export:
    if plan.options.verify:
        progress(Stage("check the module"))
        check_module(plan.spec)
    if plan.options.via == "torch":
        assert source is not None
        return _via_torch(plan, source, destination, progress)
    return _via_fx(plan, source, destination, progress)


def _via_fx(plan: ExportPlan, source: WeightSource | None, destination: Path, progress: Progress) -> Export:
    contents = traced(plan, source, progress)
    check_tensors(contents.plan)
    if source is not None:
        check_destination(destination, total_bytes(contents.plan.regions))
    with replacing(destination) as directory, prepared(contents, directory, progress) as contents:
        paths = contents.plan.data_paths
        with followed(directory / paths[0], places_of(contents.plan.regions)) as (following, digests):
            files = contents.plan.messages()
            check_captured(plan, files)
            write_graphs(directory, files, metadata(plan, source))
            proven = write_and_prove(contents, directory, following.written, progress)
            progress(Stage("digests"))
            data = {} if source is None else dict.fromkeys(paths, digests.result())
        return publish(destination, directory, contents, files, data, proven)


def _via_torch(plan: ExportPlan, source: WeightSource, destination: Path, progress: Progress) -> Export:
    subject = Subject(plan.spec, source, is_reduced=False, description="the model itself")
    reference = reference_of(subject, progress)
    with replacing(destination) as directory:
        progress(Stage("torch.onnx.export"))
        graphs = export_via_torch(reference.model, plan.tasks, directory)
        files = dict(zip(plan.graph_paths, graphs, strict=True))
        write_graphs(directory, files, metadata(plan, source))
        data = {}
        for name, places in external_places(files).items():
            with followed(directory / name, places) as (following, digests):
                following.written(places.values())
                data[name] = digests.result()
        proven = Proven()
        if plan.options.verify:
            proven = Proven(verified(plan, directory, subject, reference, progress, record=True))
        contents = Contents(plan, source, subject, None)
        return publish(destination, directory, contents, files, data, proven)
