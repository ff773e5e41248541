"""A task, and the inputs and outputs of tasks, with the names and dims that ONNX clients expect."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from specs.model.model import Model
from specs.model.stack import Stack as StackSpec
from zoo.components.mixer import State, StateTensor
from zoo.core.graph_names import GRID, HIDDEN_STATES, WORD_INPUTS
from zoo.core.state_names import Moment, state_name
from zoo.models.stack import Stack
from zoo.tracing.symbols import DerivedSize, Placeholder, Symbols
from zoo.tracing.tracer import GraphCall

BATCH = "batch_size"
FRAMES, SAMPLES = "num_frames", "num_samples"
"""The number of vectors computed from samples, and the number of samples of an encoder-decoder."""
IMAGES, PATCHES, VECTORS = "num_images", "num_patches", "num_vectors"
"""The number of images, in all rows or per row, and, for images of any size, the total numbers of patches and of vectors."""
WORDS, SPANS, LABELS = "num_words", "num_spans", "num_labels"
"""The number of words in a row, of the spans of them to score, and of labels to score them for."""
ENCODER_LENGTH = "encoder_sequence_length"
"""The number of vectors that a decoder attends to."""
ENCODER = "encoder_model"
"""The name of the encoder's graph in an encoder-decoder."""
ENCODER_HIDDEN = "encoder_hidden_states"
"""The name of the encoder's output as an input of the decoder."""


class WindowCache(NamedTuple):
    """A cache that holds a window alone: the tokens of the window, and the slots, of which there may be more."""

    window: int
    slots: int


@dataclass(frozen=True)
class Task:
    """One graph: the name of its file (without .onnx), its inputs, and the call that computes its outputs.

    ``sums``: the sizes of outputs that no input has; ``derived``: the sizes of inputs that are computed from sizes of outputs;
    ``by_value``: the sizes of outputs that depend on the values of inputs, which a trace computes from the sizes of inputs.
    With ``last_only``, a decoder returns only the scores of the last real token of each row, B 1 vocabulary. ``cache_slots``:
    the number of slots of a decoder's static caches; None if its caches grow. ``constant``: the inputs of a state without a
    length, which begins with zeros. ``windows``: the caches that hold a window alone, by the name of their length. ``about``: a key
    of all that its call depends on, the parts of the spec and the contexts in which they are built; None if it may depend on the
    whole spec, or if there is no key. With ``half_scores``, ``logits`` are float16.
    """

    name: str
    inputs: tuple[Placeholder, ...]
    call: GraphCall
    sums: tuple[str, ...] = ()
    last_only: bool = False
    cache_slots: int | None = None
    constant: frozenset[str] = frozenset()
    derived: Mapping[str, DerivedSize] = field(default_factory=dict)
    by_value: Mapping[str, DerivedSize] = field(default_factory=dict)
    windows: Mapping[str, WindowCache] = field(default_factory=dict)
    half_scores: bool = False
    about: Hashable | None = None

    def numbers(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The numbers of all symbols in the dims of the inputs, given ``sizes`` of the symbols that are not derived."""
        return {**sizes, **{name: size.size(sizes[size.source]) for name, size in self.derived.items()}}

    def symbols(self, taken: Iterable[int]) -> Symbols:
        """Numbers for a trace; ``taken`` are static sizes."""
        return Symbols.of(self.inputs, taken, self.sums, self.derived, self.by_value)


def ids_input(name: str, *dims: str | int) -> Placeholder:
    return Placeholder(name, torch.int64, (BATCH, *dims))


def stack_inputs(spec: Model, stack: StackSpec, length: str) -> tuple[Placeholder, ...]:
    """The inputs of a stack: tokens, or samples or frames of any length, with their mask; patches with image grids; or one input
    of fixed size."""
    embedding = spec.embedding_of(stack)
    if embedding.packed:
        pixels = Placeholder(embedding.input_name, torch.float32, (PATCHES, embedding.patch_width))
        return pixels, Placeholder(GRID, torch.int64, (IMAGES, 3))
    if embedding.any_length and not embedding.takes_tokens:
        _, *features = embedding.input_shape(1)
        values = Placeholder(embedding.input_name, torch.float32, (BATCH, length, *features))
        return (values, ids_input("attention_mask", length)) if embedding.takes_mask else (values,)
    if not embedding.takes_tokens:
        shape = embedding.input_shape(spec.context_length_of(stack))
        return (Placeholder(embedding.input_name, torch.float32, (BATCH, *shape)),)
    typed = embedding.segment_count > 1
    names = [embedding.input_name, "attention_mask", *(["token_type_ids"] if typed else [])]
    beside = (
        Placeholder(
            beside.name, torch.float32 if beside.is_real else torch.int64, (BATCH, length, *beside.sizes)
        )
        for beside in embedding.token_inputs
    )
    ids = (*(ids_input(name, length) for name in names), *beside)
    if embedding.reads_hidden_states:
        return *ids, Placeholder(HIDDEN_STATES, torch.float32, (BATCH, length, spec.width_of(stack)))
    return ids


def word_inputs(spec: Model, length: str) -> tuple[Placeholder, ...]:
    """The words of tokens, and spans of them, for a head that scores spans; none for others."""
    if spec.head.span_width is None:
        return ()
    numbers, counts, spans, real = WORD_INPUTS
    return (
        ids_input(numbers, length),
        ids_input(counts, 1),
        ids_input(spans, SPANS, 2),
        Placeholder(real, torch.bool, (BATCH, SPANS)),
    )


def derived_sizes(
    spec: Model, stack: StackSpec, length: str, vectors: str = FRAMES
) -> dict[str, DerivedSize]:
    """The length of a stack's inputs, derived from the number of ``vectors`` if it differs from that number."""
    embedding = spec.embedding_of(stack)
    if not embedding.any_length or embedding.takes_tokens or embedding.packed:
        return {}
    return {length: DerivedSize(vectors, embedding.input_length)}


def encoder_inputs(spec: Model) -> tuple[tuple[Placeholder, ...], dict[str, DerivedSize]]:
    """The inputs of an encoder-decoder's encoder, and their length if it differs from the number of vectors."""
    derived = derived_sizes(spec, spec.stack("encoder"), SAMPLES, ENCODER_LENGTH)
    return stack_inputs(spec, spec.stack("encoder"), SAMPLES if derived else ENCODER_LENGTH), derived


StateNames = list[tuple[str, ...]]
"""The names of the tensors in the state of each layer."""


def encoder_state(stack: Stack) -> list[tuple[StateTensor, ...]]:
    """The keys and values of an encoder's output, for each layer of a decoder."""
    return [block.cross_attention.state for block in stack.blocks]  # type: ignore[union-attr, misc]


def state_names(moment: Moment, state: Sequence[Sequence[StateTensor]], part: str = "") -> StateNames:
    """The names of inputs or outputs, such as ``past_key_values.0.key``."""
    return [
        tuple(state_name(moment, i, tensor.name, grows=tensor.grows, part=part) for tensor in layer)
        for i, layer in enumerate(state)
    ]


def state_inputs(
    names: StateNames, state: Sequence[Sequence[StateTensor]], stack: Stack, length: str | int
) -> list[list[Placeholder]]:
    """The inputs for the state of each layer; ``length`` is the name or number of its tokens."""
    dtype = next(stack.parameters()).dtype
    return [
        [
            Placeholder(
                name,
                tensor.dtype or dtype,
                (BATCH, *(length if isinstance(dim, str) else dim for dim in tensor.dims)),
            )
            for name, tensor in zip(layer, declared, strict=True)
        ]
        for layer, declared in zip(names, state, strict=True)
    ]


def constant_names(names: StateNames, state: Sequence[Sequence[StateTensor]]) -> frozenset[str]:
    """The names of the state tensors without a length."""
    return frozenset(
        name
        for layer, declared in zip(names, state, strict=True)
        for name, tensor in zip(layer, declared, strict=True)
        if not tensor.grows
    )


def gather_state(names: StateNames, values: Mapping[str, Any]) -> list[State]:
    return [tuple(values[name] for name in layer) for layer in names]


def spread_state(names: StateNames, state: Sequence[State]) -> dict[str, Any]:
    return {name: tensor for layer, tensors in zip(names, state, strict=True)
            for name, tensor in zip(layer, tensors, strict=True)}  # fmt: skip
