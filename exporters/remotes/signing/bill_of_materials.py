"""The bill of materials of an export in CycloneDX: the model, its files, its inputs and the tools that made it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from exporters.remotes.artefact import Artefact
from specs.base.errors import UserError
from zoo.core.state_names import is_past, is_present
from zoo.files.ownership import BILL_OF_MATERIALS, SIGNATURE

if TYPE_CHECKING:
    from cyclonedx.model.component import Component

    from specs.model.model import Model

_MODEL = "model"


def bill_of_materials(artefact: Artefact) -> bytes:
    """``bom.cdx.json``, CycloneDX 1.6: a function of the export, so that equal exports have equal bills."""
    try:
        from cyclonedx.model.bom import Bom, BomMetaData
        from cyclonedx.output.json import JsonV1Dot6
    except ImportError as error:
        raise UserError(
            f"Bills of materials need a library, and {error.name} is not installed.\n"
            "  Install it: pip install 'zoo[sign]'."
        ) from None
    from specs.language.load import load

    spec = load(artefact.directory / "spec.yaml")
    inputs = list(_inputs(artefact))
    model = _model(artefact, spec)
    bom = Bom(
        components=inputs,
        serial_number=uuid5(NAMESPACE_URL, f"zoo-export:{artefact.digest}"),
        metadata=BomMetaData(component=model, tools=_tools(artefact)),
    )
    bom.register_dependency(model, inputs)
    data = json.loads(JsonV1Dot6(bom).output_as_string())
    data["metadata"].pop("timestamp", None)  # independent of the time of writing
    data["metadata"]["component"]["modelCard"] = _model_card(artefact, spec, inputs)  # unknown to the library
    return (json.dumps(data, indent=2, sort_keys=True) + "\n").encode()


def _model(artefact: Artefact, spec: Model) -> Component:
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.component import Component, ComponentType

    files = [
        Component(
            type=ComponentType.FILE,
            name=name,
            bom_ref=f"file:{name}",
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=record.sha256)],
            properties=[Property(name="zoo:size", value=str(record.size))],
        )
        for name, record in artefact.files.items()
        if name not in (BILL_OF_MATERIALS, SIGNATURE)
    ]
    return Component(
        type=ComponentType.MACHINE_LEARNING_MODEL,
        name=spec.name,
        version=artefact.digest[:12],
        description=spec.summary or None,
        bom_ref=_MODEL,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=artefact.digest)],
        components=files,
        properties=[Property(name=f"zoo:{name}", value=value) for name, value in _properties(artefact)],
    )


def _properties(artefact: Artefact) -> Iterator[tuple[str, str]]:
    manifest = artefact.record.manifest
    yield "target", manifest.target
    yield "precision", manifest.precision
    yield "layout", manifest.layout
    yield "weights", f"random, seed {manifest.seed}" if manifest.weights == "random" else manifest.weights
    verification = artefact.record.verification
    yield "verified", str(verification is not None and verification.passed).lower()


def _inputs(artefact: Artefact) -> Iterator[Component]:
    """Return the inputs of the export other than the spec: weights, and the data that rounding was calibrated or judged
    on."""
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.component import Component, ComponentType

    manifest, build = artefact.record.manifest, artefact.record.build
    made_from = (build and build.made_from) or {}
    if weights := made_from.get("weights"):
        yield Component(
            type=ComponentType.DATA,
            name="weights",
            bom_ref="weights",
            properties=[Property(name="zoo:weights", value=str(weights))],
        )
    for name, inputs in (("calibration", manifest.calibrated_on), ("evaluation", manifest.judged_on)):
        if inputs is not None:
            digests = [HashType(alg=HashAlgorithm.SHA_256, content=inputs.sha256)] if inputs.sha256 else []
            yield Component(
                type=ComponentType.DATA,
                name=name,
                bom_ref=name,
                description=inputs.description,
                hashes=digests,
            )


def _tools(artefact: Artefact) -> Any:
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.tool import ToolRepository

    versions = _versions(artefact)
    return ToolRepository(
        components=[
            Component(
                type=ComponentType.APPLICATION if name == "zoo" else ComponentType.LIBRARY,
                name=name,
                version=version,
                bom_ref=f"tool:{name}",
            )
            for name, version in versions.items()
        ]
    )


def _versions(artefact: Artefact) -> Mapping[str, str]:
    """Return the tools that wrote the files, and the runtime that verified them."""
    manifest, build = artefact.record.manifest, artefact.record.build
    versions = {"zoo": manifest.zoo, "torch": manifest.torch, "onnx": manifest.onnx}
    if build is not None and build.verification is not None:
        name, _, version = build.verification.runtime.partition(" ")
        versions[name] = version
    recorded = (build and build.made_from) or {}
    return {**recorded.get("versions", {}), **versions}


def _model_card(artefact: Artefact, spec: Model, inputs: list[Component]) -> dict[str, Any]:
    manifest, build = artefact.record.manifest, artefact.record.build
    first, last = next(iter(manifest.graphs.values())), [*manifest.graphs.values()][-1]
    card: dict[str, Any] = {
        "modelParameters": {
            "architectureFamily": "transformer",
            "modelArchitecture": spec.architecture,
            "inputs": [{"format": text} for text in _formats(first.inputs)],
            "outputs": [{"format": text} for text in _formats(last.outputs)],
        }
    }
    data = [str(component.bom_ref.value) for component in inputs if component.name != "weights"]
    if data:
        card["modelParameters"]["datasets"] = [{"ref": name} for name in data]
    if build is not None and build.quality is not None:
        figures = build.quality.figures.items()
        card["quantitativeAnalysis"] = {
            "performanceMetrics": [{"type": name, "value": f"{value:g}"} for name, value in figures]
        }
    return card


def _formats(shapes: Mapping[str, Sequence[int | str]]) -> Iterator[str]:
    """Return inputs such as ``input_ids [batch_size, sequence_length]``, without caches, which have too many tensors."""
    for name, shape in shapes.items():
        if not (is_past(name) or is_present(name)):
            yield f"{name} [{', '.join(map(str, shape))}]"
