"""Example programs for decoders: they generate tokens if the head scores the next one, and otherwise print its outputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from exporters.layouts.example_input import example_grid
from exporters.layouts.onnx_outputs import outputs_of, reading
from specs.model.model import Model
from zoo.core.graph_names import COORDINATES, COORDINATES_BESIDE_SLOTS, GRID, TOKENS_AHEAD
from zoo.generation.settings import GENERATION
from zoo.record.manifest import Manifest
from zoo.record.records import GraphRecord

_TYPES = "{'float': np.float32, 'float16': np.float16, 'int8': np.int8, 'uint8': np.uint8}"


@dataclass(frozen=True)
class _DecoderCall:
    """A call of a decoder's graph as lines: before the first call, before every call, its feeds without a cache, after every
    call."""

    graph: GraphRecord
    feeds: str
    first: Sequence[str] = ()
    before: Sequence[str] = ()
    after: Sequence[str] = ()


def reads_settings(spec: Model, manifest: Manifest) -> bool:
    """Whether the program reads the checkpoint's generation settings."""
    return spec.decodes and _generates(spec) and GENERATION in manifest.files


def _generates(spec: Model) -> bool:
    return spec.head.kind == "language_modeling"


def _settings(spec: Model, manifest: Manifest) -> list[str]:
    """The lines that read the stop tokens."""
    if not reads_settings(spec, manifest):
        return []
    return [
        f'settings = json.load(open("{GENERATION}"))',
        'end = np.atleast_1d(settings.get("eos_token_id", -1))',
    ]


def _zeros(session: str, condition: str, windows: Mapping[str, int] = MappingProxyType({})) -> list[str]:
    """The lines that define ``past``, the empty cache of a session; ``windows`` are the slots of caches that hold a window alone."""
    size = "slots.get(size, 0)" if windows else "0"
    return [
        *([f"slots = {json.dumps(dict(windows))}"] if windows else []),
        f"types = {_TYPES}".replace("'", '"'),
        "past = {",
        f"    value.name: np.zeros([1, *(size if isinstance(size, int) else {size} for size in value.shape[1:])], types[value.type[7:-1]])",
        f"    for value in {session}.get_inputs()",
        f"    if {condition}",
        "}",
    ]


_OWN = 'value.name.startswith("past_")'


def _steps(graph: GraphRecord, prompt: int = 4) -> int:
    """The number of tokens to generate after a prompt."""
    return max(1, min(20, graph.context_length - prompt) if graph.context_length else 20)


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _lines(
    spec: Model, manifest: Manifest, step: _DecoderCall, tokenized: bool, images: int = 0
) -> list[str]:
    """The lines that run a decoder from ``ids`` and ``past``; ``images`` of the ids are placeholders of image vectors."""
    feeds = f"{{{step.feeds}, **past}}"
    if not _generates(spec):
        run = f"session.run(None, {feeds})"
        return [
            "new = ids",
            *step.first,
            *step.before,
            *outputs_of("session", run),
            *reading(spec, tokenized),
        ]
    settings = _settings(spec, manifest)
    ending = ["if new.item() in end:", "    break"] if settings else []
    inside = [
        *step.before,
        f"logits, *present = session.run(None, {feeds})",
        "past = dict(zip(past, present))",
        *step.after,
        "new = logits[:, -1:].argmax(-1)  # greedy decoding",
        "ids = np.hstack([ids, new])",
        *ending,
    ]
    loop = f"for _ in range({_steps(step.graph, 4 + images)}):"
    return [*settings, "new = ids", *step.first, loop, *_indented(inside), _shown(tokenized)]


def _shown(tokenized: bool, name: str = "ids") -> str:
    return f"print(tokenizer.decode({name}[0]))" if tokenized else f"print({name}[0])"


def _placed(slots: bool) -> tuple[list[str], str, list[str]]:
    """The positions of new tokens as code: the lines before the first step, the entry of the feeds, the lines after a step.

    ``slots``: by their slots in a static cache instead of a mask of all tokens.
    """
    if not slots:
        return [], '"attention_mask": np.ones_like(ids)', []
    first = "positions = np.arange(ids.shape[1])[None]"
    return [first], '"position_ids": positions', ["positions = positions[:, -1:] + 1"]


def decoder(spec: Model, manifest: Manifest, tokenized: bool) -> str:
    """The lines for a decoder."""
    (graph,) = manifest.graphs.values()
    typed = ', "token_type_ids": np.zeros_like(new)' if "token_type_ids" in graph.inputs else ""
    first, placed, after = _placed("position_ids" in graph.inputs)
    step = _DecoderCall(graph, f'"input_ids": new, {placed}{typed}', first, (), after)
    windows = {} if manifest.cache is None else manifest.cache.windows
    return "\n".join([*_zeros("session", _OWN, windows), *_lines(spec, manifest, step, tokenized)])


def vision_language(spec: Model, manifest: Manifest, tokenized: bool) -> str:
    """The lines for a decoder that reads an image and tokens."""
    connector = spec.image_connector
    graph = [*manifest.graphs.values()][-1]
    slots = COORDINATES in graph.inputs and (
        not spec.rotates_by_axis or COORDINATES_BESIDE_SLOTS in graph.inputs
    )
    vectors = example_grid(spec)[1] // connector.square**2 if spec.packs_images else spec.vectors_per_image
    seen = f', "{GRID}": {GRID}' if spec.packs_images else ""
    opening = [
        f"placeholders = np.full((1, {vectors}), {connector.token})  # where the image belongs",
        "ids = np.hstack([placeholders, ids])",
        f'(seen,) = vision.run(None, {{"pixel_values": pixel_values{seen}}})',
    ]
    step = _packed_step(spec, graph, slots) if spec.packs_images else _image_step(graph, slots)
    return "\n".join([*opening, *_zeros("session", _OWN), *_lines(spec, manifest, step, tokenized, vectors)])


def _image_step(graph: GraphRecord, slots: bool) -> _DecoderCall:
    first, placed, after = _placed(slots)
    ahead, fed = (", ahead", f'"{TOKENS_AHEAD}": ahead, ') if TOKENS_AHEAD in graph.inputs else (",", "")
    before = f'(embedded{ahead}) = embedding.run(None, {{"input_ids": new, "image_features": seen}})'
    return _DecoderCall(
        graph, f'"inputs_embeds": embedded, {fed}{placed}', first, [before], [*after, "seen = seen[:0]"]
    )


def _packed_step(spec: Model, graph: GraphRecord, slots: bool) -> _DecoderCall:
    """A step of a decoder that reads images of any size."""
    first, placed, after = _placed(slots)
    if not spec.rotates_by_axis:
        before = '(embedded,) = embedding.run(None, {"input_ids": new, "image_features": seen})'
        return _DecoderCall(
            graph, f'"inputs_embeds": embedded, {placed}', first, [before], [*after, "seen = seen[:0]"]
        )
    name = COORDINATES_BESIDE_SLOTS if COORDINATES_BESIDE_SLOTS in graph.inputs else COORDINATES
    entries = f', "attention_mask": np.ones_like(new), "{GRID}": {GRID}'
    before = f'(embedded, axes) = embedding.run(None, {{"input_ids": new, "image_features": seen{entries}}})'
    return _DecoderCall(
        graph,
        f'"inputs_embeds": embedded, "{name}": axes + place, {placed}',
        [*first, "place = 0"],
        [before],
        [*after, "place += axes.max() + 1", "seen = seen[:0]"],
    )


def encoder_decoder(
    spec: Model, manifest: Manifest, tokenized: bool, feeds: Callable[[Sequence[str]], str]
) -> str:
    """The lines for an encoder-decoder; ``feeds`` gives the entries of the encoder's inputs."""
    encoder, graph = manifest.graphs.values()
    lines = [
        "names = [output.name for output in encoder.get_outputs()]",
        f"encoded = dict(zip(names, encoder.run(None, {{{feeds(list(encoder.inputs))}}})))",
        "cross = {",
        '    name.replace("present", "past_key_values"): value',
        "    for name, value in encoded.items()",
        '    if name.startswith("present")',
        "}",
        *_zeros("decoder", f"{_OWN} and value.name not in cross"),
    ]
    masked = "encoder_attention_mask" in graph.inputs
    mask = ', "encoder_attention_mask": np.ones_like(ids)' if masked else ""
    settings = _settings(spec, manifest)
    start = 'settings.get("decoder_start_token_id", settings.get("bos_token_id", 0))' if settings else "0"
    fixed = "position_ids" in graph.inputs
    if not _generates(spec):
        tokens = "ids" if spec.embedding_of(spec.first_stack).takes_tokens else "np.array([[0]], np.int64)"
        positions = ', "position_ids": np.arange(new.shape[1])[None]' if fixed else ""
        run = f'decoder.run(None, {{"input_ids": new{mask}{positions}, **cross, **past}})'
        read = [
            f"new = {tokens}  # what the decoder reads",
            *outputs_of("decoder", run),
            *reading(spec, tokenized),
        ]
        return "\n".join([*lines, *read])
    positions = ', "position_ids": np.full((1, 1), step)' if fixed else ""
    ending = ["if output[0, -1] in end:", "    break"] if settings else []
    inside = [
        f'feeds = {{"input_ids": output[:, -1:]{mask}{positions}}}',
        "logits, *present = decoder.run(None, {**feeds, **cross, **past})",
        "past = dict(zip(past, present))",
        "output = np.hstack([output, logits[:, -1:].argmax(-1)])  # greedy decoding",
        *ending,
    ]
    return "\n".join(
        [
            *lines,
            *settings,
            f"output = np.array([[{start}]], np.int64)  # the decoder's start token",
            f"for step in range({_steps(graph)}):",
            *_indented(inside),
            _shown(tokenized, "output"),
        ]
    )
