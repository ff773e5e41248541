"""The shapes of every module's inputs and outputs, in symbols.

The model runs twice on the meta device, which computes shapes only, by the rules of :mod:`zoo.ops`, with different sizes of
batch, tokens, cache and encoder input: a size that is equal in both runs is fixed, and the others are named after the size that they follow.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from specs.base.errors import reason_of
from specs.model.model import Model
from specs.model.stack import Stack
from zoo.builder import ZooModel
from zoo.checks.recorder import RecordedCall, Recorder
from zoo.checks.shape_rules import ShapeRules
from zoo.checks.symbols import MEANINGS, SIZES, UNNAMED, Names, describe, names_of_blocks, symbols_in
from zoo.core.caller import line_of, line_text
from zoo.core.graph_names import HIDDEN_STATES
from zoo.core.roles import kind_name
from zoo.core.token_inputs import token_inputs
from zoo.models.decoder import Decoder
from zoo.models.dual_encoder import DualEncoder
from zoo.models.encoder import Encoder
from zoo.models.encoder_decoder import EncoderDecoder
from zoo.models.vision_language import VisionLanguage


@dataclass(frozen=True)
class ModuleShapes:
    """A module's inputs and outputs, such as ``B x T x 768``; ``method`` is the called method, mostly ``forward``."""

    path: str
    kind: str
    method: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        data = {"path": self.path, "kind": self.kind, "method": self.method}
        return {**data, "inputs": list(self.inputs), "outputs": list(self.outputs)}


@dataclass(frozen=True)
class ShapeReport:
    """Every module's shapes, in the order of the module tree, and their problems."""

    modules: tuple[ModuleShapes, ...]
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.problems

    @property
    def symbols(self) -> dict[str, str]:
        """The symbols in use and their meanings."""
        used = set[str]().union(
            *(symbols_in(text) for row in self.modules for text in row.inputs + row.outputs)
        )
        return {symbol: meaning for symbol, meaning in MEANINGS.items() if symbol in used}

    def as_dict(self) -> dict[str, Any]:
        """As JSON data, with a row for every module."""
        rows = [row.as_dict() for row in self.modules]
        return {
            "passed": self.passed,
            "problems": list(self.problems),
            "symbols": self.symbols,
            "modules": rows,
        }


def check_shapes(model: ZooModel, spec: Model) -> ShapeReport:
    """The shapes in a model on the meta device, as :func:`zoo.builder.assemble` returns it.

    A decoder runs with a cache; an encoder-decoder encodes, and then decodes with a cache. A model has problems if it
    fails to run, has sizes that follow no varied size, or outputs that do not follow the batch.
    """
    recorders = (Recorder(model), Recorder(model))
    for run, recorder in enumerate(recorders):
        try:
            _run(model, spec, recorder, {symbol: sizes[run] for symbol, sizes in SIZES.items()})
        except MemoryError:
            raise
        except Exception as error:
            where = recorder.failed.path or spec.name if recorder.failed else spec.name
            return ShapeReport((), (_failure(where, error),))
    first, second = recorders[0].calls, recorders[1].calls
    if [call.path for call in first] != [call.path for call in second]:
        return ShapeReport((), ("the modules that run depend on the sizes of the inputs",))
    order = {path: index for index, (path, _) in enumerate(model.named_modules())}
    further = _blocks(spec)
    rows = dict.fromkeys(_row(a, b, further) for a, b in zip(first, second, strict=True))
    modules = tuple(sorted(rows, key=lambda row: order[row.path]))
    return ShapeReport(modules, tuple(_problems(modules)))


def _failure(where: str, error: Exception) -> str:
    """A module's error, with the line of code that raised it."""
    lines = [
        f"{where} fails to run: {type(error).__name__}: {reason_of(error)}",
        f"at {line_text(line_of(error))}",
    ]
    if "meta tensor" in str(error):
        lines.append(
            "Remove Python control flow on tensor values, such as with torch.where: shapes have no values."
        )
    return "\n  ".join(lines)


def _blocks(spec: Model) -> Names:
    """The names of the numbers of blocks whose sums an encoder sees."""
    blocks = spec.encoder.layer_blocks() if spec.encoder is not None else ()
    sizes = {mixer.summarized_tokens for block in blocks for mixer in block.mixers}
    length = "S" if spec.architecture == "encoder-decoder" else "T"
    return names_of_blocks(length, {size for size in sizes if size is not None})


def _row(first: RecordedCall, second: RecordedCall, further: Names) -> ModuleShapes:
    kind = kind_name(first.module)
    inputs = describe(first.inputs, second.inputs, further)
    outputs = describe(first.outputs, second.outputs, further)
    return ModuleShapes(first.path, kind, first.method, inputs, outputs)


def _problems(modules: Sequence[ModuleShapes]) -> list[str]:
    unnamed = [row.path for row in modules if any(UNNAMED in text for text in row.inputs + row.outputs)]
    problems = [
        f"{path} has a size that depends on none of batch, tokens, cache and encoder" for path in unnamed
    ]
    for row in modules:
        for text in row.outputs if not row.path else ():
            if ": B" not in text and "(B x" not in text:
                problems.append(f"{text} does not start with the batch, B")
    return problems


Sizes = dict[str, int]


class _Inputs:
    """Inputs on the meta device, of some sizes."""

    def __init__(self, spec: Model, size: Sizes) -> None:
        self._spec, self.size = spec, size
        self._token = token_inputs(spec.embedding_of(spec.last_stack), torch.zeros(1, 1, dtype=torch.int64))
        """The inputs beside tokens, for one token."""

    def ids(self, length: int) -> Tensor:
        """Token ids, or a mask."""
        return torch.empty(self.size["B"], length, dtype=torch.int64, device="meta")

    def beside(self, length: int) -> dict[str, Tensor]:
        """The inputs beside tokens: hidden states, if a decoder reads them, tasks and boxes."""
        spec = self._spec
        if not spec.reads_hidden_states:
            batch = self.size["B"]
            return {
                name: torch.empty(batch, length, *token.shape[2:], dtype=token.dtype, device="meta")
                for name, token in self._token.items()
            }
        return {HIDDEN_STATES: torch.empty(self.size["B"], length, spec.d_model, device="meta")}

    def read(self, length: int, stack: Stack | None = None) -> tuple[Tensor, Tensor | None]:
        """The input of a stack, the first one unless given, and its mask."""
        stack = stack or self._spec.first_stack
        embedding = self._spec.embedding_of(stack)
        if embedding.takes_tokens:
            return self.ids(length), self.ids(length)
        context = self._spec.context_length_of(stack)
        shape = (self.size["B"], *embedding.input_shape(length if embedding.any_length else context))
        mask = torch.empty(shape[:2], dtype=torch.int64, device="meta") if embedding.takes_mask else None
        return torch.empty(shape, device="meta"), mask


@torch.no_grad()
def _run(model: ZooModel, spec: Model, recorder: Recorder, size: Sizes) -> None:
    inputs = _Inputs(spec, size)
    with recorder, ShapeRules():
        _call(model, inputs, recorder)


@functools.singledispatch
def _call(model: nn.Module, inputs: _Inputs, recorder: Recorder) -> None:
    """Call a model once, with a cache if it decodes."""
    raise TypeError(type(model))


@_call.register
def _(model: Encoder, inputs: _Inputs, recorder: Recorder) -> None:
    model(*inputs.read(inputs.size["T"]), **inputs.beside(inputs.size["T"]))


@_call.register
def _(model: DualEncoder, inputs: _Inputs, recorder: Recorder) -> None:
    text, mask = inputs.read(inputs.size["T"])
    model(text, inputs.read(inputs.size["T"], model.spec.image)[0], mask)


@_call.register
def _(model: EncoderDecoder, inputs: _Inputs, recorder: Recorder) -> None:
    tokens, past = inputs.size["T"], inputs.size["P"]
    source, mask = inputs.read(inputs.size["S"])
    encoded = model.encode(source, mask).present_key_values
    with recorder.forgetting():
        cache = model.decode(inputs.ids(past), encoded, mask).present_key_values
    model.decode(inputs.ids(tokens), encoded, mask, cache, inputs.ids(past + tokens))


@_call.register
def _(model: Decoder, inputs: _Inputs, recorder: Recorder, **images: Tensor) -> None:
    tokens, past = inputs.size["T"], inputs.size["P"]
    with recorder.forgetting():
        cache = model(inputs.ids(past), **inputs.beside(past)).present_key_values
    model(inputs.ids(tokens), inputs.ids(past + tokens), cache, **images, **inputs.beside(tokens))


@_call.register
def _(model: VisionLanguage, inputs: _Inputs, recorder: Recorder) -> None:
    image = model.spec.image
    if model.spec.packs_images:  # patches for S vectors
        pixels, _ = inputs.read(model.square**2 * inputs.size["S"], image)
        grids = torch.empty(inputs.size["B"], 3, dtype=torch.int64, device="meta")
        images = {"pixel_values": pixels[0], "image_grid_thw": grids}
    else:
        images = {"pixel_values": inputs.read(0, image)[0]}
    _call.dispatch(Decoder)(model, inputs, recorder, **images)
