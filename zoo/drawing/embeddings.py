"""Embeddings in drawings: from the inputs to the first layer, in the order of each embedding's formula."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from specs.base.base import Component
from specs.kinds.embedding import EmbeddingKind, Patches, Spectrogram, Tokens
from specs.kinds.frames import Frames, FramesKind, SubsampledSpectrogram
from specs.kinds.packed_patches import PackedPatches
from specs.kinds.waveform import FilteredWaveform, SampledKind, StemConvolution, Waveform
from specs.model.model import Model
from specs.model.stack import Stack
from zoo.drawing import wording
from zoo.drawing.diagram import Element, Joined, Label, Part
from zoo.drawing.parameters import Counts
from zoo.drawing.wording import TIMES, sizes


def embedding_elements(
    spec: Model, stack: Stack, path: str, length: str, counts: Counts
) -> Iterator[Element]:
    """The inputs of a stack and the parts of its embedding at ``path``; ``length``: that of the stream."""
    embedding = spec.embedding_of(stack)
    batch = () if isinstance(embedding, PackedPatches) else ("B",)
    yield Label(wording.input_words(embedding), sizes(*batch, *_input_sizes(spec, stack, length)), "begin")
    reader = _Embedding(spec, stack, path, counts)
    position = list(reader.position(stack))
    match embedding:
        case Tokens():
            yield from reader.tokens(embedding, position)
        case Patches():
            yield from reader.patches(embedding, position)
        case PackedPatches():
            yield from reader.packed_patches(embedding, position)
        case Spectrogram():
            yield from reader.spectrogram(embedding)
            yield from position
        case Waveform():
            yield from reader.waveform(embedding, position)
        case FilteredWaveform():
            yield from reader.filtered_waveform(embedding)
            yield from position
        case Frames():
            yield from reader.frames(embedding)
            yield from position
        case SubsampledSpectrogram():
            yield from reader.subsampled_spectrogram(embedding)
            yield from position
        case _:
            yield from reader.other(embedding, position)


def _input_sizes(spec: Model, stack: Stack, length: str) -> tuple[str | int, ...]:
    """The sizes of one input."""
    embedding = spec.embedding_of(stack)
    if isinstance(embedding, PackedPatches):
        return (length, embedding.patch_width)
    if isinstance(embedding, SampledKind):
        return (f"({embedding.step:,} {length} {embedding.reach - embedding.step:+,})",)
    if isinstance(embedding, FramesKind):
        step = embedding.step
        frames = length if step == 1 else f"({step:,} {length} {1 - step:+,})"
        return frames, embedding.features
    return (length,) if embedding.takes_tokens else embedding.input_shape(spec.context_length_of(stack))


class _Embedding:
    """Makes the parts of an embedding."""

    def __init__(self, spec: Model, stack: Stack, path: str, counts: Counts) -> None:
        self._spec, self._path, self._counts = spec, path, counts
        self._d_model = spec.width_of(stack)

    def _part(self, title: str, module: str, *details: str) -> Part:
        return self._counts.part("embedding", title, details, f"{self._path}.{module}")

    def position(self, stack: Stack) -> Iterator[Joined]:
        """The position that is added to the embedding, if any."""
        position = self._spec.position_of(stack)
        if position.embedded:
            path = f"{self._path}.position"
            rows = next(iter(self._counts.sizes(f"{path}.table")), None)
            width = self._spec.embedding_of(stack).position_width(self._d_model)
            details = wording.position_details(position, rows, width)
            yield Joined(self._counts.part("position", wording.title(position.kind), details, path))

    def tokens(self, embedding: Tokens, position: list[Joined]) -> Iterator[Element]:
        """Token, scale, token type, position, norm; the projection comes last, or before the token type."""
        d_model = self._d_model
        yield self._part("Token embedding", "token", sizes(*self._counts.sizes(f"{self._path}.token")))
        if embedding.scale is not None:
            sqrt = embedding.scale == "sqrt_d_model"
            yield Part("other", f"{TIMES} √{d_model:,}" if sqrt else f"{TIMES} {embedding.scale:g}")
        projection = []
        if self._counts.sizes(f"{self._path}.projection"):
            widths = self._counts.widths(f"{self._path}.projection")
            projection = [self._part("Projection", "projection", widths)]
        first = embedding.projection is not None and embedding.projection.place == "first"
        yield from projection if first else ()
        if embedding.token_types:
            rows = self._counts.sizes(f"{self._path}.token_type")
            yield Joined(self._part("Token types", "token_type", sizes(*rows)))
        yield from position
        yield from self._norm(embedding.norm)
        yield from () if first else projection

    def _norm(self, norm: Component | None) -> Iterator[Element]:
        """The norm after the position, if there is one."""
        if norm is not None and norm.kind != "none":
            yield self._counts.part("norm", wording.title(norm.kind), [], f"{self._path}.norm")

    def patches(self, embedding: Patches, position: list[Joined]) -> Iterator[Element]:
        """The projected patches, after class and distillation token; position, and register tokens that have none."""
        d_model, size = self._d_model, embedding.patch_size
        widths = f"{sizes(embedding.channels, size, size)} → {d_model:,}"
        yield self._part("Patches through one matrix", "patch", widths)
        if embedding.class_token:
            yield Joined(self._part("Class token", "class_token", sizes(1, d_model)), "∥")
        if embedding.distillation_token:
            yield Joined(self._part("Distillation token", "distillation_token", sizes(1, d_model)), "∥")
        yield from position
        if embedding.registers:
            yield Joined(self._part("Registers", "register", sizes(embedding.registers, d_model)), "∥")
        yield from self._norm(embedding.norm)

    def packed_patches(self, embedding: PackedPatches, position: list[Joined]) -> Iterator[Element]:
        """The projected patches and position."""
        size = embedding.patch_size
        values = sizes(embedding.channels, embedding.frames, size, size)
        yield self._part("Patches through one matrix", "patch", f"{values} → {self._d_model:,}")
        yield from position

    def spectrogram(self, embedding: Spectrogram) -> Iterator[Element]:
        """Two convolutions."""
        bins, d_model, kernel = embedding.mel_bins, self._d_model, f"kernel {embedding.kernel}"
        activation = wording.ACTIVATIONS[embedding.activation]
        yield self._part("Convolution", "first", f"{bins:,} → {d_model:,}", kernel, activation)
        stride = f"stride {embedding.stride}"
        yield self._part("Convolution", "second", f"{d_model:,} → {d_model:,}", kernel, stride, activation)

    def waveform(self, embedding: Waveform, position: list[Joined]) -> Iterator[Element]:
        """Equal convolutions in a row as one part, then norm, projection, position and norm."""
        activation, before = wording.ACTIVATIONS[embedding.activation], 1
        for at, each in enumerate(embedding.convolutions):
            norm = {"layer": ["layer norm"], "group": ["norm over time"] if at == 0 else []}[
                embedding.convolution_norm
            ]
            yield self._convolution(f"layers.{at}", each, before, *norm, activation)
            before = each.channels
        if embedding.projection_norm is not None and embedding.projection_norm.kind != "none":
            kind = wording.title(embedding.projection_norm.kind)
            yield self._counts.part("norm", kind, [], f"{self._path}.projection_norm")
        yield self._part("Projection", "projection", self._counts.widths(f"{self._path}.projection"))
        yield from position
        if embedding.norm is not None and embedding.norm.kind != "none":
            yield self._counts.part("norm", wording.title(embedding.norm.kind), [], f"{self._path}.norm")

    def filtered_waveform(self, embedding: FilteredWaveform) -> Iterator[Element]:
        """Filters, norm, and further convolutions."""
        first, activation = embedding.convolutions[0], wording.ACTIVATIONS[embedding.activation]
        yield self._convolution("filters", first, 1, wording.ACTIVATIONS[embedding.filter_activation])
        yield self._counts.part("norm", "Norm of the recording", [], f"{self._path}.norm")
        for at, (before, each) in enumerate(pairwise(embedding.convolutions)):
            yield self._convolution(f"layers.{at}", each, before.channels, activation)

    def frames(self, embedding: Frames) -> Iterator[Element]:
        """Norm and projection."""
        yield from self._norm(embedding.norm)
        yield self._part("Projection", "projection", self._counts.widths(f"{self._path}.projection"))

    def subsampled_spectrogram(self, embedding: SubsampledSpectrogram) -> Iterator[Element]:
        """Convolutions, those of every channel with a matrix after them, projection and scale."""
        sizes_of = f"kernel {embedding.kernel}", f"stride {embedding.stride}"
        activation = wording.ACTIVATIONS[embedding.activation]
        for at in range(embedding.convolutions):
            widths = f"{embedding.channels if at else 1:,} → {embedding.channels:,}"
            title = "Convolution" if at == 0 else "Depthwise convolution and matrix"
            yield self._part(title, f"layers.{at}", widths, *sizes_of, "time and bins", activation)
        yield self._part("Projection", "projection", self._counts.widths(f"{self._path}.projection"))
        if embedding.scale is not None:
            root = embedding.scale == "sqrt_d_model"
            yield Part("other", f"{TIMES} √{self._d_model:,}" if root else f"{TIMES} {embedding.scale:g}")

    def _convolution(self, module: str, spec: StemConvolution, before: int, *details: str) -> Part:
        """A convolution over time of so many channels before."""
        sizes = (f"{before:,} → {spec.channels:,}", f"kernel {spec.kernel}", f"stride {spec.stride}")
        return self._part("Convolution", module, *sizes, *details)

    def other(self, embedding: EmbeddingKind, position: list[Joined]) -> Iterator[Element]:
        """A plugin's embedding."""
        without = [path for joined in position for path in joined.part.modules]
        said = wording.plain_fields_text(embedding)
        title = wording.title(embedding.kind)
        yield self._counts.part("embedding", title, said, self._path, without=without)
        yield from position
