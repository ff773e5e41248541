"""The model card of an export, ``README.md``: a function of the inputs alone, so that equal exports have equal cards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

import yaml

from exporters.graph.precisions import PRECISIONS
from exporters.layouts import LAYOUTS
from exporters.layouts.onnx_usage import profiles_of
from exporters.layouts.purpose import purpose_of
from specs.base.errors import UserError
from specs.model.model import Model
from zoo.core.units import byte_text
from zoo.files.card import CARD, sealed
from zoo.files.destination import MANIFEST
from zoo.files.ownership import ADAPTER, BUILD
from zoo.files.reading import open_regular, unreadable
from zoo.record.manifest import Manifest
from zoo.record.records import EngineClaim
from zoo.reports.parameters import parameter_report
from zoo.weights.modules import DOCUMENT, QUERY, STATIC_PLACE
from zoo.weights.names import SINGLE

_SNAPSHOT = re.compile(r"models--([\w.-]+?)--([\w.-]+)/snapshots/[0-9a-f]{40}/?$")
"""Where the hub's library keeps a commit of a repository."""

_LARGEST_CARD = 2**16
"""How much of a checkpoint's card is read, in bytes."""

_ONE_ROW = "GroupQueryAttention"
"""The operation of ONNX Runtime that takes several tokens after a past of one row only."""

ROWS = "Give each call at least one row: kernels of ONNX Runtime end the process, or fail, on an empty batch."

_LICENSE = ("license", "license_name", "license_link")


def write_card(directory: Path, spec: Model, manifest: Manifest, origin: Path) -> None:
    """Write the card of an export with its ``manifest``; ``origin`` is the checkpoint, if its weights are from one."""
    from_checkpoint = manifest.weights == "checkpoint"
    base_model = base_model_of(origin) if from_checkpoint else None
    license_fields = license_of(origin) if from_checkpoint else {}
    (directory / CARD).write_bytes(sealed(card(spec, manifest, base_model, license_fields)))


def card(spec: Model, manifest: Manifest, base_model: str | None, license_fields: dict[str, str]) -> str:
    """The card as Markdown; ``license_fields`` are the fields of the checkpoint's own card."""
    front = yaml.safe_dump(
        _front_matter(spec, manifest, base_model, license_fields), sort_keys=False, allow_unicode=True
    )
    parts = [
        f"---\n{front}---",
        f"# {spec.name}: ONNX, {manifest.precision}, {manifest.target}",
        _plain(spec.summary),
        _facts(spec, manifest, base_model),
        _usage(spec, manifest),
        _profiles(manifest),
        _adapters(manifest),
        _interface(manifest),
        _batches(manifest),
        _queries(spec, manifest),
        _evidence(manifest),
        _files(manifest),
        f"Exported with zoo {manifest.zoo}.",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def base_model_of(origin: Path) -> str | None:
    """The hub repository that a checkpoint is a snapshot of; None for others."""
    match = _SNAPSHOT.search(origin.absolute().as_posix())
    return f"{match[1]}/{match[2]}" if match else None


def license_of(origin: Path) -> dict[str, str]:
    """The license that the card of a checkpoint states, by the names of the fields; empty where it states none.

    Raises :class:`specs.base.errors.UserError` for a card that is not a regular file of the checkpoint's directory.
    """
    path = (origin if origin.is_dir() else origin.parent) / CARD
    try:
        with open_regular(path, path.parent) as file:
            text = file.read(_LARGEST_CARD).decode(errors="replace")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(unreadable(path, error)) from None
    front = re.match(r"---\r?\n(.*?\n)---\r?\n", text, re.DOTALL)
    try:
        data = yaml.safe_load(front[1]) if front else None
    except (AttributeError, RecursionError, TypeError, ValueError, yaml.YAMLError):  # not our concern
        return {}
    fields = data if isinstance(data, dict) else {}
    return {name: fields[name] for name in _LICENSE if isinstance(fields.get(name), str)}


def _front_matter(
    spec: Model, manifest: Manifest, base_model: str | None, license_fields: dict[str, str]
) -> dict[str, Any]:
    front: dict[str, Any] = {**license_fields, "library_name": "onnx"}
    if pipeline := purpose_of(spec).pipeline:
        front["pipeline_tag"] = pipeline
    if base_model is not None:
        front["base_model"] = base_model
        if PRECISIONS[manifest.precision].bits:
            front["base_model_relation"] = "quantized"
    tags = ["onnx", "onnxruntime", "zoo", spec.architecture, manifest.precision, manifest.target]
    if manifest.layout != "onnx":
        tags.append(manifest.layout)
    return {**front, "tags": tags}


def _facts(spec: Model, manifest: Manifest, base_model: str | None) -> str:
    lengths = [spec.context_length_of(stack) for _, stack in spec.stacks()]
    weights = {
        "none": "none: the graph alone",
        "random": f"random, seed {manifest.seed}: not trained",
        "checkpoint": base_model or "a checkpoint",
    }
    options, counts = manifest.options, parameter_report(spec)
    total, active = counts.total_parameters, counts.active_parameters
    rows = [
        ("architecture", spec.architecture),
        ("parameters", f"{total:,}"),
        ("active per token", f"{active:,}" if active != total else ""),
        ("layers", " + ".join(str(stack.depth) for _, stack in spec.stacks())),
        ("d_model", spec.widths_text),
        ("vocabulary", f"{spec.vocab_size:,}" if spec.vocab_size else ""),
        ("context length", " + ".join(f"{length:,}" for length in lengths if length)),
        ("weights", weights[manifest.weights]),
        ("precision", manifest.precision),
        ("8-bit inputs", f"{options.activations} scales" if options.activations else ""),
        ("cache precision", options.cache_precision if options.cache_precision != "float" else ""),
        ("target", f"{manifest.target} ({', '.join(manifest.providers)})"),
        ("layout", f"{manifest.layout}, for {LAYOUTS[manifest.layout].client}"),
        ("source", _plain(spec.source or "")),
    ]
    return _table(("", "value"), [row for row in rows if row[1]])


def _usage(spec: Model, manifest: Manifest) -> str:
    usage = LAYOUTS[manifest.layout].usage(spec, manifest)
    runtimes = sorted({graph.minimum_runtime for graph in manifest.graphs.values()})
    about = f"Run in this directory; needs {', '.join(usage.packages)} ({', '.join(runtimes)} or newer)."
    exact = max((graph.minimum_without_vnni or "" for graph in manifest.graphs.values()), default="")
    if exact:
        about += f" On x86-64 processors without VNNI, {exact} or newer computes its 8-bit products exactly."
    variables = {
        name: value for graph in manifest.graphs.values() for name, value in graph.environment.items()
    }
    about += "".join(
        f" ONNX Runtime refuses the opset of these files unless the environment variable {name} is {value}."
        for name, value in variables.items()
    )
    note = f" {usage.note}" if usage.note else ""
    return f"## Usage\n\n{about}{note}\n\n```{usage.language}\n{usage.code}\n```"


def _profiles(manifest: Manifest) -> str:
    """The sizes of inputs for a compiler; empty if the target needs none."""
    path = profiles_of(manifest)
    if path is None:
        return ""
    shapes = " \\\n".join(
        f"""  --{end}Shapes="$(jq -r '.[\"{{graph}}\"].trt_profile_{end}_shapes' {path})\""""
        for end in ("min", "opt", "max")
    )
    commands = (
        f"trtexec --stronglyTyped --onnx={graph} --saveEngine={PurePath(graph).with_suffix('.engine')} \\\n"
        + shapes.format(graph=graph)
        for graph in manifest.graphs
    )
    return (
        f"## Optimization profiles\n\n`{path}` has the smallest, the common and the largest shapes of the inputs of each graph, "
        "as options of ONNX Runtime's TensorRT provider and as trtexec takes them:\n\n```sh\n"
        + "\n".join(commands)
        + "\n```"
    )


def _adapters(manifest: Manifest) -> str:
    """How a client switches adapters on; empty without any."""
    if not manifest.adapters:
        return ""
    names = ", ".join(f"`{name}`" for name in manifest.adapters)
    several = len(manifest.graphs) > 1
    lines = _SWITCHED_TOGETHER if several else _SWITCHED
    python = "\n".join(lines).format(file=f"{manifest.adapters[0]}{ADAPTER}")
    others = (
        ""
        if several
        else "\n\n`run_with_iobinding` ignores active adapters: bind their matrices as inputs. onnxruntime-genai loads the same "
        "files with `Adapters.load`."
    )
    return (
        f"## Adapters\n\nWithout an adapter, the graphs compute the base model. {names} can be switched on for each call:\n\n"
        f"```python\n{python}\n```{others}"
    )


_SWITCHED = (
    "adapter = onnxruntime.LoraAdapter()",
    'adapter.Load("{file}")',
    "run_options = onnxruntime.RunOptions()",
    "run_options.add_active_adapter(adapter)",
    "outputs = session.run(None, inputs, run_options)",
)
_SWITCHED_TOGETHER = (
    'matrices = onnxruntime.AdapterFormat.read_adapter("{file}").get_parameters()',
    "for value in session.get_overridable_initializers():  # each graph takes its own",
    "    if value.name in matrices:",
    "        inputs[value.name] = matrices[value.name].numpy()",
    "outputs = session.run(None, inputs)",
)
"""The calls that switch an adapter on, of one graph, and of several: ONNX Runtime refuses an active adapter with matrices of other
graphs."""


def _interface(manifest: Manifest) -> str:
    rows = []
    for name, graph in manifest.graphs.items():
        for side, values in (("input", graph.inputs), ("output", graph.outputs)):
            rows += [(f"`{name}`", side, *row) for row in _folded(values)]
    table = _table(("graph", "", "name", "shape"), rows)
    return f"## Inputs and outputs\n\n{table}\n\n{ROWS}"


def _batches(manifest: Manifest) -> str:
    """How rows of different lengths share a call of a decoder with a cache."""
    cache = manifest.cache
    if cache is None:
        return ""
    side = "on the right" if cache.padding == "right" else "on either side"
    mark = "0 in `attention_mask`" if cache.length is None else "-1 in `position_ids`"
    lines = [f"Pad the rows of a batch {side}, with {mark}."]
    if cache.windows:
        sizes = ", ".join(f"`{name}` = {slots}" for name, slots in cache.windows.items())
        lines = [
            f"Caches that hold a window alone have a fixed number of slots ({sizes}); attention drops the keys before the window itself. "
            "All rows of a batch have the same length, without padding."
        ]
    if any(_ONE_ROW in graph.operations for graph in manifest.graphs.values()):
        lines.append(
            f"After a past, a call takes one new token of each row, or several tokens of a single row (batch 1): "
            f"{_ONE_ROW} refuses several tokens of several rows."
        )
    return "## Batches\n\n" + " ".join(lines)


def _folded(values: dict[str, tuple[int | str, ...]]) -> Iterator[tuple[str, str]]:
    """Names and shapes; caches that differ only in the layer are one row."""
    seen = set()
    for name, shape in values.items():
        row = (f"`{re.sub(r'[.][0-9]+[.]', '.{i}.', name)}`", f"`{' x '.join(map(str, shape))}`")
        if row not in seen:
            seen.add(row)
            yield row


def _queries(spec: Model, manifest: Manifest) -> str:
    """How queries are encoded, where texts are encoded in another way."""
    weights = f"{STATIC_PLACE}/{SINGLE}"
    if weights in manifest.files:
        return (
            "## Queries\n\nThe graph encodes documents. A query needs none: every token of it, without special tokens, has the weight "
            f"of its id in `{weights}`, once. The score of a document is the product of both vectors."
        )
    if set(spec.head.parts) == {QUERY, DOCUMENT}:
        query, document = (spec.head.parts[name].vector_output for name in (QUERY, DOCUMENT))
        return f"## Queries\n\n`{query}` is the vector of a query, and `{document}` that of a document."
    return ""


def _evidence(manifest: Manifest) -> str:
    lines = [
        f"If the export was verified, `{BUILD}` has the comparison of ONNX Runtime with the PyTorch model, and the effect of "
        f"quantization. `{MANIFEST}` has the SHA-256 of every file and every weight.",
    ]
    if manifest.engines:
        lines.append(
            f"Also verified on: {'; '.join(map(_shown, manifest.engines))}. No other engine was tried."
        )
    if manifest.judged_on is not None:
        lines.append(f"Quality was measured on {manifest.judged_on.description}.")
    if manifest.calibrated_on is not None:
        lines.append(f"Weights were calibrated on {manifest.calibrated_on.description}.")
    return "## Verification and quality\n\n" + "\n\n".join(lines)


def _shown(claim: EngineClaim) -> str:
    if claim.architectures:
        return f"{claim.name} compiles the files for {', '.join(claim.architectures)}"
    return f"{claim.name} computes the same"


def _files(manifest: Manifest) -> str:
    rows = [(f"`{name}`", byte_text(file.size), f"`{file.sha256}`") for name, file in manifest.files.items()]
    return "## Files\n\n" + _table(("file", "size", "SHA-256"), rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _plain(text: str) -> str:
    """Text on one line."""
    return " ".join(text.split())
