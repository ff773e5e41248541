"""The settings and records in an export's directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import onnx

from exporters.data.digests import DataDigests
from exporters.graph.checking import check_graph
from exporters.layouts import Deployment
from exporters.steps.card import write_card
from exporters.steps.manifest import (
    Export,
    cache_record,
    file_records,
    graph_record,
    installed_version,
    metadata_of,
    write_records,
)
from exporters.steps.plan import Plan
from exporters.steps.verify import Verified
from exporters.target.kernels.table import table_of
from exporters.target.profiles import longest_sequence, profile, provider_options
from specs.forms.resolved import resolved
from specs.language.writing import dump
from zoo.checkpoints.carried import carry, carry_files, carry_static_queries
from zoo.record.manifest import FORMAT, Manifest
from zoo.record.records import InputsRecord, ShapingRecord
from zoo.weights.modules import PROMPTS, SETTINGS, body_directory
from zoo.weights.source import WeightSource

if TYPE_CHECKING:
    from exporters.quality.parts import Representative


def publish(
    destination: Path,
    directory: Path,
    verified: Verified,
    files: Mapping[str, onnx.ModelProto],
    data: Mapping[str, DataDigests],
) -> Export:
    """Complete a directory that has its graphs (``files`` by path) and their ``data``; it will become
    ``destination``.

    Raises :class:`exporters.graph.checking.InvalidGraphError`.
    """
    weights, plan, options = verified.weights, verified.weights.plan, verified.weights.plan.options
    checked = {name: check_graph(name, graph) for name, graph in files.items()}
    unfused = {plan.layout.graph_path(graph.name): graph.unfused for graph in weights.graphs.graphs}
    longest = {name: longest_sequence(task, plan.spec) for name, task in plan.graph_paths.items()}
    kernels = table_of(plan.target.providers[0])
    cache = cache_record([*files.values()][-1], [*plan.graph_paths.values()][-1])
    deployment = _deployment(plan)
    _write_settings(plan, deployment, directory, shared=cache is not None and cache.kind == "shared")
    (directory / "spec.yaml").write_text(dump(resolved(plan.spec)), "utf-8")
    kind = _kind_of(weights.source, options.weights)
    manifest = Manifest(
        format=FORMAT,
        zoo=installed_version("zoo"),
        torch=installed_version("torch"),
        onnx=installed_version("onnx"),
        target=plan.target.name,
        providers=plan.providers,
        precision=options.precision,
        layout=plan.layout.name,
        options=ShapingRecord(**options.model_dump(include={*ShapingRecord.model_fields})),
        weights=kind,
        seed=options.seed if kind == "random" else None,
        cache=cache,
        graphs={
            name: graph_record(graph, checked[name], longest[name], unfused.get(name, ()), kernels)
            for name, graph in files.items()
        },
        quantized=plan.quantized,
        mixed=weights.mixed,
        files=file_records(directory, {name: digests.file for name, digests in data.items()}),
        tensors={name: digests.tensors for name, digests in data.items()},
        calibrated_on=_inputs_record(weights.calibrated_on),
        judged_on=_inputs_record(verified.judged_on),
        engines=tuple(engine.claim for engine in verified.verification.engines)
        if verified.verification
        else (),
        adapters=tuple(verified.adapters),
    )
    write_card(directory, plan.spec, manifest, deployment.origin)
    origin = "none: the graph alone" if weights.source is None else weights.source.description
    build = write_records(
        directory, manifest, origin, verified.verification, verified.quality, verified.adapters
    )
    return Export(destination, manifest, build, verified.verification, verified.quality, verified.unjudged)


def _deployment(plan: Plan) -> Deployment:
    return Deployment(
        plan.model,
        plan.spec,
        plan.target,
        plan.precision,
        plan.options.weights,
        plan.options.cuda_graph,
        plan.windows,
        tuple(output.name for output in plan.layer_outputs),
    )


def metadata(plan: Plan, source: WeightSource | None) -> dict[str, str]:
    """The metadata of every graph."""
    weights: str = _kind_of(source, plan.options.weights)
    if weights == "random":
        weights = f"random, seed {plan.options.seed}"
    return metadata_of(plan.spec, plan.target, plan.options.precision, weights)


def _kind_of(source: WeightSource | None, weights: str) -> Literal["none", "random", "checkpoint"]:
    if source is None:
        return "none"
    return "random" if weights == "random" else "checkpoint"


def _write_settings(plan: Plan, deployment: Deployment, directory: Path, *, shared: bool) -> None:
    carry_files(deployment.origin, directory)
    if deployment.spec.head.embeds_texts:
        carry(body_directory(deployment.origin), directory, SETTINGS)
        carry(deployment.origin, directory, PROMPTS)
    if deployment.spec.head.weighs_terms:
        carry_static_queries(deployment.origin, directory)
    settings = dict(plan.layout.settings(deployment, shared))
    if plan.target.profiles is not None:
        settings[plan.target.profiles] = {
            name: provider_options(profile(plan.spec, task)) for name, task in plan.graph_paths.items()
        }
    for name, data in settings.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _inputs_record(inputs: Representative | None) -> InputsRecord | None:
    return None if inputs is None else InputsRecord(description=inputs.description, sha256=inputs.sha256)
