"""Programs that run an export with ONNX Runtime and NumPy alone."""

from __future__ import annotations

import json
from collections.abc import Sequence

from exporters.layouts.example_input import TOKENIZER, example_grid, example_ids, example_sizes
from exporters.targets import TARGETS
from specs.connector import ConnectorKind
from specs.model import Model
from specs.packed_patches import PackedPatches
from specs.stack import Stack
from zoo.graph_names import AHEAD, COORDINATES, COORDINATES_BESIDE_SLOTS, GRID
from zoo.manifest import Manifest
from zoo.records import GraphRecord
from zoo.usage import Usage

_EXACT = (
    '\noptions.add_session_config_entry("session.x64quantprecision", "1")  # exact sums of 8-bit products'
)

_QUIET = "\noptions.log_severity_level = 3  # no warnings that past and present are different buffers"
_RELEASED = "\noptions.log_severity_level = 3  # no warnings about the opset"
_TYPES = '{"tensor(float)": np.float32, "tensor(float16)": np.float16}'


_SESSIONS = {
    "encoder": ["session"],
    "decoder": ["session"],
    "encoder-decoder": ["encoder", "decoder"],
    "dual-encoder": ["text_model", "vision_model", "session"],
    "vision-language": ["vision", "embedding", "session"],
}
"""The names of the graphs, in order."""


def usage(spec: Model, manifest: Manifest) -> Usage:
    """The program for one export."""
    tokenized = TOKENIZER in manifest.files
    packages = ["onnxruntime", "numpy", *(["tokenizers"] if tokenized else [])]
    if not _numpy_holds(manifest):
        return Usage(
            "sh", "zoo run . --prompt 'Once upon a time'", ["zoo"], "NumPy lacks the type of its cache."
        )
    parts = [_opening(spec, manifest, tokenized)]
    if spec.architecture == "encoder":
        parts.append(_encoder(spec, manifest))
    elif spec.architecture == "dual-encoder":
        parts.append(_dual_encoder(spec, manifest))
    elif spec.architecture == "vision-language":
        parts.append(_vision_language(spec, manifest, tokenized))
    elif spec.architecture == "decoder":
        parts.append(_decoder(manifest, tokenized))
    else:
        parts.append(_encoder_decoder(manifest, tokenized))
    return Usage("python", "\n".join(parts), packages)


def _numpy_holds(manifest: Manifest) -> bool:
    """Return whether NumPy has the element types of all inputs: caches may be bfloat16 or quantized."""
    cached = manifest.cache is not None
    return not (cached and (manifest.precision == "bf16" or (manifest.cache and manifest.cache.precision)))


def _opening(spec: Model, manifest: Manifest, tokenized: bool) -> str:
    variables = {
        name: value for graph in manifest.graphs.values() for name, value in graph.environment.items()
    }
    shapes = profiles_of(manifest)
    accepted = [f'os.environ["{name}"] = "{value}"  # accept this opset' for name, value in variables.items()]
    standard = [*(["import json"] if shapes else []), *(["import os"] if accepted else [])]
    imports = [*standard, *([""] if standard else []), "import numpy as np", "import onnxruntime"]
    imports += ["from tokenizers import Tokenizer"] if tokenized else []
    blocks = any(each.carried and each.blocks and each.blocks.size for each in manifest.quantized)
    exact = _EXACT if manifest.precision == "int8" and not blocks else ""
    fixed = manifest.cache is not None and manifest.cache.length is not None
    lines = [
        *imports,
        "",
        *accepted,
        f"options = onnxruntime.SessionOptions(){exact}{_QUIET if fixed else _RELEASED if accepted else ''}",
    ]
    if shapes:
        lines.append(f'shapes = json.load(open("{shapes}", encoding="utf-8"))  # the sizes to compile for')
    names = _SESSIONS[spec.architecture]
    lines += [
        f"{name} = onnxruntime.InferenceSession({json.dumps(path)}, options, providers=[{_providers(manifest, path)}])"
        for name, path in zip(names, manifest.graphs, strict=True)
    ]
    if tokenized:
        lines += [f"tokenizer = Tokenizer.from_file({json.dumps(TOKENIZER)})"]
    several = {"dual-encoder": [spec.text, spec.image], "vision-language": [spec.image, spec.decoder]}
    stacks = several.get(spec.architecture, [spec.first_stack])
    read = zip(stacks, manifest.graphs.values(), strict=False)
    given = [_input(spec, stack, graph, tokenized) for stack, graph in read if stack is not None]
    return "\n".join([*lines, "", *given])


def _providers(manifest: Manifest, graph: str) -> str:
    """Return the providers of a graph as items of a list, the first with its optimization profile where there is one."""
    first, *rest = map(json.dumps, manifest.providers)
    return ", ".join([f"({first}, shapes[{json.dumps(graph)}])" if profiles_of(manifest) else first, *rest])


def profiles_of(manifest: Manifest) -> str | None:
    """Return the file of an export's optimization profiles, or None."""
    target = TARGETS.get(manifest.target)
    return target.profiles if target is not None and target.profiles in manifest.files else None


def _input(spec: Model, stack: Stack, graph: GraphRecord, tokenized: bool) -> str:
    """Return the lines that define ``ids``, or another kind of input."""
    embedding = spec.embedding_of(stack)
    if isinstance(embedding, PackedPatches):
        grid, patches = example_grid(spec)
        return (
            f"pixel_values = np.zeros(({patches}, {embedding.patch_width}), np.float32)  # from the model's preprocessor\n"
            f"{GRID} = np.array([{grid}])  # frames, rows and columns of patches"
        )
    if not embedding.takes_tokens:
        shape = (1, *example_sizes(graph.inputs[embedding.input_name]))
        return f"{embedding.input_name} = np.zeros({shape}, np.float32)  # from the model's preprocessor"
    if tokenized:
        return 'ids = np.array([tokenizer.encode("Once upon a time").ids], np.int64)'
    return f"ids = np.array([[{example_ids(spec, graph)}]], np.int64)  # from the model's tokenizer"


_GIVEN = {
    "input_ids": "ids",
    "attention_mask": "np.ones_like(ids)",
    "token_type_ids": "np.zeros_like(ids)",
    "pixel_values": "pixel_values",
    "input_features": "input_features",
    "input_values": "input_values",
}


def _feeds(names: Sequence[str]) -> str:
    heard = next((name for name in ("input_values", "input_features") if name in names), None)
    masks = {} if heard is None else {"attention_mask": f"np.ones({heard}.shape[:2], np.int64)"}
    given = {**_GIVEN, **masks}
    return ", ".join(f'"{name}": {given[name]}' for name in names)


def _encoder(spec: Model, manifest: Manifest) -> str:
    (graph,) = manifest.graphs.values()
    return f"""outputs = session.run(None, {{{_feeds(list(graph.inputs))}}})
for output, value in zip(session.get_outputs(), outputs):
    print(output.name, value.shape)"""


def _dual_encoder(spec: Model, manifest: Manifest) -> str:
    whole = [*manifest.graphs.values()][-1]
    shown = 'outputs["logits_per_image"])  # images x texts'
    if spec.head.kind == "detection":
        shown = 'outputs["logits"], outputs["pred_boxes"])  # images x patches x texts, and x 4'
    return f"""names = [output.name for output in session.get_outputs()]
outputs = dict(zip(names, session.run(None, {{{_feeds(list(whole.inputs))}}})))
print({shown}; text_model and vision_model give the vectors alone"""


def _zeros(session: str, condition: str) -> str:
    """Return the lines that define ``past``, the empty cache of a session."""
    return f"""types = {_TYPES}
past = {{
    value.name: np.zeros([1, *(size if isinstance(size, int) else 0 for size in value.shape[1:])], types[value.type])
    for value in {session}.get_inputs()
    if {condition}
}}"""


def _steps(graph: GraphRecord) -> int:
    return min(20, graph.context_length - 4) if graph.context_length else 20


def _places(slots: bool) -> tuple[str, str, str]:
    """Return what says where new tokens stand: the line before the steps, the entry of the feeds, the line after a step.

    ``slots``: by their slots in a static cache, and not by the mask of all tokens.
    """
    if not slots:
        return "", '"attention_mask": np.ones_like(ids)', ""
    first = "\npositions = np.arange(ids.shape[1])[None]"
    return first, '"position_ids": positions', "\n    positions = positions[:, -1:] + 1"


def _decoder(manifest: Manifest, tokenized: bool) -> str:
    (graph,) = manifest.graphs.values()
    typed = ', "token_type_ids": np.zeros_like(new)' if "token_type_ids" in graph.inputs else ""
    first, places, then = _places("position_ids" in graph.inputs)
    return f"""{_zeros("session", 'value.name.startswith("past_")')}
new = ids{first}
for _ in range({max(1, _steps(graph))}):
    logits, *present = session.run(None, {{"input_ids": new, {places}{typed}, **past}})
    past = dict(zip(past, present)){then}
    new = logits[:, -1:].argmax(-1)  # greedy decoding
    ids = np.hstack([ids, new])
{_shown(tokenized)}"""


def _vision_language(spec: Model, manifest: Manifest, tokenized: bool) -> str:
    connector = spec.connector
    assert isinstance(connector, ConnectorKind)
    graph = [*manifest.graphs.values()][-1]
    slots = COORDINATES in graph.inputs and (
        not spec.rotates_by_axis or COORDINATES_BESIDE_SLOTS in graph.inputs
    )
    first, places, then = _places(slots)
    ahead, fed = (", ahead", f'"{AHEAD}": ahead, ') if AHEAD in graph.inputs else (",", "")
    if spec.packs_images:
        return _packed_images(spec, graph, (first, places, then), tokenized)
    return f"""placeholders = np.full((1, {spec.vectors_per_image}), {connector.token})  # where the image belongs
new = ids = np.hstack([placeholders, ids])
(seen,) = vision.run(None, {{"pixel_values": pixel_values}})
{_zeros("session", 'value.name.startswith("past_")')}{first}
for _ in range({max(1, _steps(graph))}):
    (embedded{ahead}) = embedding.run(None, {{"input_ids": new, "image_features": seen}})
    logits, *present = session.run(None, {{"inputs_embeds": embedded, {fed}{places}, **past}})
    past = dict(zip(past, present)){then}
    new, seen = logits[:, -1:].argmax(-1), seen[:0]  # greedy decoding
    ids = np.hstack([ids, new])
{_shown(tokenized)}"""


def _packed_images(spec: Model, graph: GraphRecord, slots: tuple[str, str, str], tokenized: bool) -> str:
    connector = spec.connector
    assert isinstance(connector, ConnectorKind)
    _, patches = example_grid(spec)
    first, places, following = slots
    outputs, given, placed, then = "embedded,", "", "", ""
    if spec.rotates_by_axis:
        name = COORDINATES_BESIDE_SLOTS if COORDINATES_BESIDE_SLOTS in graph.inputs else COORDINATES
        outputs, placed = "embedded, axes", f'"{name}": axes + place, '
        given = f', "attention_mask": np.ones_like(new), "{GRID}": {GRID}'
        then = "\n    place += axes.max() + 1"
    return f"""placeholders = np.full((1, {patches // connector.square**2}), {connector.token})  # where the image belongs
new = ids = np.hstack([placeholders, ids])
(seen,) = vision.run(None, {{"pixel_values": pixel_values, "{GRID}": {GRID}}})
{_zeros("session", 'value.name.startswith("past_")')}{first}{then and chr(10) + "place = 0"}
for _ in range({max(1, _steps(graph))}):
    ({outputs}) = embedding.run(None, {{"input_ids": new, "image_features": seen{given}}})
    logits, *present = session.run(None, {{"inputs_embeds": embedded, {placed}{places}, **past}})
    past = dict(zip(past, present)){following}{then}
    new, seen = logits[:, -1:].argmax(-1), seen[:0]  # greedy decoding
    ids = np.hstack([ids, new])
{_shown(tokenized)}"""


def _encoder_decoder(manifest: Manifest, tokenized: bool) -> str:
    first, then = manifest.graphs.values()
    masked = "encoder_attention_mask" in then.inputs
    mask = ', "encoder_attention_mask": np.ones_like(ids)' if masked else ""
    fixed = "position_ids" in then.inputs
    positions = ', "position_ids": np.full((1, 1), step)' if fixed else ""
    source = _feeds(list(first.inputs))
    return f"""names = [output.name for output in encoder.get_outputs()]
encoded = dict(zip(names, encoder.run(None, {{{source}}})))
cross = {{
    name.replace("present", "past_key_values"): value
    for name, value in encoded.items()
    if name.startswith("present")
}}
{_zeros("decoder", 'value.name.startswith("past_") and value.name not in cross')}
output = np.array([[0]], np.int64)  # the decoder's start token
for step in range({max(1, _steps(then))}):
    feeds = {{"input_ids": output[:, -1:]{mask}{positions}}}
    logits, *present = decoder.run(None, {{**feeds, **cross, **past}})
    past = dict(zip(past, present))
    output = np.hstack([output, logits[:, -1:].argmax(-1)])  # greedy decoding
{_shown(tokenized, "output")}"""


def _shown(tokenized: bool, name: str = "ids") -> str:
    return f"print(tokenizer.decode({name}[0]))" if tokenized else f"print({name}[0])"
