"""From a spec to a verified directory of ONNX files: one value per stage.

request -> plan -> graphs -> weights -> verified -> export
"""

from __future__ import annotations

from pathlib import Path

from exporters.data.data_file import places_of, total_bytes
from exporters.data.digests import external_places, followed
from exporters.graph.trace import write_graphs
from exporters.steps.graphs import Graphs, check_captured, check_tensors
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from exporters.steps.preconditions import check_inputs
from exporters.steps.publish import metadata, publish
from exporters.steps.request import Request
from exporters.steps.static_activations import with_activations
from exporters.steps.verify import (
    ModelFiles,
    Verified,
    verification_request,
    write_and_verify,
)
from exporters.steps.weights import Weights, read_quality_inputs, rounded_as_asked
from exporters.verification.compare import verify
from exporters.verification.module_checks import check_module
from exporters.verification.reference import reference_of
from exporters.verification.verified_model import VerifiedModel
from specs.model.model import Model
from zoo.builder import ZooModel
from zoo.core.progress import Progress, Stage
from zoo.files.destination import check_destination, replacing


def export(
    spec: Model,
    destination: Path,
    options: ExportOptions = ExportOptions(),
    progress: Progress = lambda stage: None,
) -> Export:
    """Write the ONNX files of a spec to a directory, which appears once they are verified.

    Raises :class:`specs.base.errors.UserError` for invalid input, :class:`exporters.verification.module_checks.BehaviourError` if the
    model does not behave as its spec says, :class:`exporters.verification.result.VerificationError` if the files do not
    compute what the model computes, :class:`exporters.quality.quality.QualityError` if rounding
    loses more than allowed, and :class:`exporters.graph.checking.InvalidGraphError` if a graph is not valid ONNX.
    """
    return _exported(Request.of_spec(spec, options, destination), destination, progress)


def export_module(
    model: ZooModel, destination: Path, options: ExportOptions, progress: Progress = lambda stage: None
) -> Export:
    """Export a module that was built from a spec, with the weights that it holds."""
    return _exported(Request.of_module(model, options), destination, progress)


def _exported(request: Request, destination: Path, progress: Progress) -> Export:
    if request.options.verify:
        progress(Stage("check the module"))
        check_module(request.spec)
    if request.options.via == "torch":
        return _exported_via_torch(request, destination, progress)
    plan = Plan.of(request)
    quality_inputs = read_quality_inputs(plan, progress)
    plan = with_activations(plan, quality_inputs)
    check_inputs(plan.options, quality_inputs)
    progress(Stage("trace"))
    graphs = Graphs.of(plan)
    weights = Weights.of(graphs, request.source, quality_inputs)
    check_tensors(graphs)
    if plan.adapters:
        from exporters.steps.adapters import check_adapters

        check_adapters(plan.adapters, [value.name for graph in graphs.graphs for value in graph.adapters])
    if request.source is not None:
        check_destination(destination, total_bytes(graphs.regions))
    with replacing(destination) as directory, rounded_as_asked(weights, directory, progress) as weights:
        data = directory / plan.data_paths[0]
        with followed(data, places_of(weights.regions)) as (following, digests):
            files = weights.graphs.messages()
            check_captured(weights.graphs, files)
            write_graphs(directory, files, metadata(plan, request.source))
            verified = write_and_verify(weights, directory, following.written, progress)
            if plan.adapters:
                from exporters.steps.quality import with_verified_adapters

                verified = with_verified_adapters(verified, directory, progress)
            progress(Stage("digests"))
            data_digests = {} if request.source is None else dict.fromkeys(plan.data_paths, digests.result())
        return publish(destination, directory, verified, files, data_digests)


def _exported_via_torch(request: Request, destination: Path, progress: Progress) -> Export:
    """The export whose graphs and data files PyTorch's exporter writes."""
    from exporters.steps.via_torch.export import export_via_torch

    plan, source = Plan.of(request), request.source
    assert source is not None
    model = VerifiedModel(plan.spec, source, is_reduced=False, description="the model itself")
    weights = Weights(Graphs(plan, (), {}), source, model)
    reference = reference_of(model, progress)
    with replacing(destination) as directory:
        progress(Stage("torch.onnx.export"))
        graphs = export_via_torch(reference.model, plan.tasks, directory)
        files = dict(zip(plan.graph_paths, graphs, strict=True))
        write_graphs(directory, files, metadata(plan, source))
        data_digests = {}
        for name, places in external_places(files).items():
            with followed(directory / name, places) as (following, digests):
                following.written(places.values())
                data_digests[name] = digests.result()
        verified = Verified(weights)
        if plan.options.verify:
            request_to_verify = verification_request(
                ModelFiles(weights, directory, reference), progress, record=True, compilers=True
            )
            verified = Verified(weights, verify(request_to_verify))
        return publish(destination, directory, verified, files, data_digests)
