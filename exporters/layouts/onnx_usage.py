"""Example programs that run an export with only ONNX Runtime and NumPy."""

from __future__ import annotations

import json
from collections.abc import Sequence

from exporters.layouts.example_input import TOKENIZER, example_grid, example_ids, example_sizes
from exporters.layouts.layout import draft_usage
from exporters.layouts.onnx_decoding import decoder, encoder_decoder, reads_settings, vision_language
from exporters.layouts.onnx_outputs import outputs_of, reading
from exporters.target.session_options import EXACT_INTEGERS, SIGNED_BLOCKS
from exporters.target.targets import TARGETS
from specs.kinds.embedding import TokenInput
from specs.model.model import Model
from specs.model.stack import Stack
from zoo.core.graph_names import GRID
from zoo.record.manifest import Manifest
from zoo.record.records import GraphRecord
from zoo.record.usage import Usage
from zoo.weights.names import GLINER

_ENTRIES = {EXACT_INTEGERS: "exact int8 without VNNI", SIGNED_BLOCKS: "weights in blocks stay signed"}
_QUIET = "no warnings that past and present are different buffers"
_RELEASED = "no warnings about the opset"

_SESSIONS = {
    "encoder": ["session"],
    "decoder": ["session"],
    "encoder-decoder": ["encoder", "decoder"],
    "dual-encoder": ["text_model", "vision_model", "session"],
    "vision-language": ["vision", "embedding", "session"],
}
"""The names of the graphs, in order."""


_ENTITIES = """from gliner import GLiNER

model = GLiNER.from_pretrained(".", load_onnx_model=True)
print(model.predict_entities("Ada Lovelace lived in London.", ["person", "city"]))"""
"""The program for GLiNER's client, which needs its config and the tokenizer's settings."""

SETTINGS = "tokenizer_config.json"


def usage(spec: Model, manifest: Manifest) -> Usage:
    """The program for one export."""
    if spec.reads_hidden_states:
        return draft_usage()
    if {GLINER, SETTINGS} <= manifest.files.keys():
        return Usage("python", _ENTITIES, ["gliner", "onnxruntime"])
    tokenized = TOKENIZER in manifest.files
    packages = ["onnxruntime", "numpy", *(["tokenizers"] if tokenized else [])]
    if not _numpy_holds(manifest):
        return _without_numpy(spec, manifest)
    parts = [_opening(spec, manifest, tokenized)]
    if spec.architecture == "encoder":
        parts.append(_encoder(spec, manifest, tokenized))
    elif spec.architecture == "dual-encoder":
        parts.append(_dual_encoder(spec, manifest))
    elif spec.architecture == "vision-language":
        parts.append(vision_language(spec, manifest, tokenized))
    elif spec.architecture == "decoder":
        parts.append(decoder(spec, manifest, tokenized))
    else:
        parts.append(encoder_decoder(spec, manifest, tokenized, _feeds))
    return Usage("python", "\n".join(parts), packages)


def _numpy_holds(manifest: Manifest) -> bool:
    """Whether NumPy has the element types of all inputs: caches may be bfloat16."""
    return manifest.cache is None or manifest.precision != "bf16"


def _without_numpy(spec: Model, manifest: Manifest) -> Usage:
    """The command that runs an export with a cache in bfloat16."""
    note = "NumPy lacks the type of its cache, bfloat16."
    if spec.head.kind != "language_modeling":
        return Usage("sh", "zoo verify .", ["zoo"], f"{note} C and C++ clients can run it.")
    name = spec.embedding_of(spec.first_stack).input_name
    options = {"pixel_values": "--image picture.png"}.get(name, "--audio speech.wav")
    if name == "input_ids":
        ids = example_ids(spec, next(iter(manifest.graphs.values()))).replace(" ", "")
        options = "--text 'Once upon a time'" if TOKENIZER in manifest.files else f"--ids {ids}"
    if spec.architecture == "vision-language":
        options = f"--image picture.png {options}"
    return Usage("sh", f"zoo run . {options}", ["zoo"], note)


def _opening(spec: Model, manifest: Manifest, tokenized: bool) -> str:
    variables = {
        name: value for graph in manifest.graphs.values() for name, value in graph.environment.items()
    }
    shapes = profiles_of(manifest)
    accepted = [f'os.environ["{name}"] = "{value}"  # accept this opset' for name, value in variables.items()]
    standard = [
        *(["import json"] if shapes or reads_settings(spec, manifest) else []),
        *(["import os"] if accepted else []),
    ]
    imports = [*standard, *([""] if standard else []), "import numpy as np", "import onnxruntime"]
    imports += ["from tokenizers import Tokenizer"] if tokenized else []
    fixed = manifest.cache is not None and manifest.cache.length is not None
    options, chosen = _options(manifest, _QUIET if fixed else _RELEASED if accepted else "")
    lines = [*imports, "", *accepted, *options]
    if shapes:
        lines.append(f'shapes = json.load(open("{shapes}", encoding="utf-8"))  # the sizes to compile for')
    names = _SESSIONS[spec.architecture]
    lines += [
        f"{name} = onnxruntime.InferenceSession({json.dumps(path)}, {chosen[path]}, providers=[{_providers(manifest, path)}])"
        for name, path in zip(names, manifest.graphs, strict=True)
    ]
    if tokenized:
        lines += [f"tokenizer = Tokenizer.from_file({json.dumps(TOKENIZER)})"]
    several = {"dual-encoder": [spec.text, spec.image], "vision-language": [spec.image, spec.decoder]}
    stacks = several.get(spec.architecture, [spec.first_stack])
    read = zip(stacks, manifest.graphs.values(), strict=False)
    inputs = [_input(spec, stack, graph, tokenized) for stack, graph in read if stack is not None]
    return "\n".join([*lines, "", *inputs])


def _options(manifest: Manifest, quiet: str) -> tuple[list[str], dict[str, str]]:
    """Return the lines that make the session options of an export, and the variable for each graph.

    Graphs with 8-bit products have options of their own: ONNX Runtime may refuse other graphs with them. ``quiet`` says why
    warnings are off; empty leaves them on.
    """
    graphs = manifest.graphs
    entries = {name: value for graph in graphs.values() for name, value in graph.session_entries.items()}
    uniform = all(graph.session_entries for graph in graphs.values())
    chosen = {
        path: "exact" if graph.session_entries and not uniform else "options"
        for path, graph in graphs.items()
    }
    lines = []
    for variable in sorted({*chosen.values()}):
        lines.append(f"{variable} = onnxruntime.SessionOptions()")
        if variable == "exact" or uniform:
            lines += [
                f'{variable}.add_session_config_entry("{name}", "{value}")  # {_ENTRIES[name]}'
                for name, value in entries.items()
            ]
        lines += [f"{variable}.log_severity_level = 3  # {quiet}"] if quiet else []
    return lines, chosen


def _providers(manifest: Manifest, graph: str) -> str:
    """Return the providers of a graph as items of a list, the first with its optimization profile if it has one."""
    first, *rest = map(json.dumps, manifest.providers)
    return ", ".join([f"({first}, shapes[{json.dumps(graph)}])" if profiles_of(manifest) else first, *rest])


def profiles_of(manifest: Manifest) -> str | None:
    """Return the file of an export's optimization profiles, or None."""
    target = TARGETS.get(manifest.target)
    return target.profiles if target is not None and target.profiles in manifest.files else None


def _input(spec: Model, stack: Stack, graph: GraphRecord, tokenized: bool) -> str:
    """Return the lines that define ``ids``, or another kind of input."""
    embedding = spec.embedding_of(stack)
    if embedding.packed:
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
    "words_mask": "words",
    "text_lengths": "words.max(1, keepdims=True)",
    "span_idx": "spans",
    "span_mask": "spans[..., 1] < count",
    "input_features": "input_features",
    "input_values": "input_values",
}


def _feeds(names: Sequence[str], beside: Sequence[TokenInput] = ()) -> str:
    heard = next((name for name in ("input_values", "input_features") if name in names), None)
    masks = {} if heard is None else {"attention_mask": f"np.ones({heard}.shape[:2], np.int64)"}
    zeros = {
        value.name: f"np.zeros(({', '.join(map(str, ('*ids.shape', *value.sizes)))},), np.{'float32' if value.is_real else 'int64'})"
        for value in beside
    }
    values = {**_GIVEN, **masks, **zeros}
    return ", ".join(f'"{name}": {values[name]}' for name in names)


def _encoder(spec: Model, manifest: Manifest, tokenized: bool) -> str:
    (graph,) = manifest.graphs.values()
    beside = spec.embedding_of(spec.first_stack).token_inputs
    run = f"session.run(None, {{{_feeds(list(graph.inputs), beside)}}})"
    return "\n".join([*_words(spec), *outputs_of("session", run), *reading(spec, tokenized)])


def _words(spec: Model) -> list[str]:
    """Return the lines that define the words and spans of a head that scores spans; none for others."""
    if (width := spec.head.span_width) is None:
        return []
    return [
        f"count, width = ids.shape[1], {width}",
        "words = np.arange(1, count + 1)[None]  # every token as a word; the first token of a word has its number, others 0",
        "first = np.repeat(np.arange(count), width)",
        "spans = np.stack((first, first + np.tile(np.arange(width), count)), -1)[None]  # the first and last word of each",
    ]


def _dual_encoder(spec: Model, manifest: Manifest) -> str:
    whole = [*manifest.graphs.values()][-1]
    shown = 'outputs["logits_per_image"])  # images x texts'
    if spec.head.kind == "detection":
        shown = 'outputs["logits"], outputs["pred_boxes"])  # images x patches x texts, and x 4'
    return f"""names = [output.name for output in session.get_outputs()]
outputs = dict(zip(names, session.run(None, {{{_feeds(list(whole.inputs))}}})))
print({shown}; text_model and vision_model give the vectors alone"""
