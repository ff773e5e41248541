"""The stacks of a model, encoding and decoding, behind one way to run them.

Shapes: batch B, tokens T, past length P, width D.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from specs.kinds.attention import MultiHeadShape
from specs.kinds.connector import ConnectorKind
from specs.kinds.embedding import EmbeddingKind
from specs.kinds.packed_patches import PackedPatches
from specs.kinds.position import NoPosition, PositionKind
from specs.kinds.relative_key import RelativeKey
from specs.model.model import Model
from specs.model.stack import Stack, StackName
from zoo.builder import ZooModel
from zoo.components.head import token_outputs
from zoo.components.mixer import State, StateTensor, declared_state
from zoo.models.decoder import Decoder
from zoo.models.dual_encoder import DualEncoder
from zoo.models.encoder import Encoder
from zoo.models.encoder_decoder import EncoderDecoder
from zoo.models.outputs import Outputs
from zoo.models.vision_language import VisionLanguage

LENGTH = 6
"""The number of tokens that a check reads, where the context allows."""


@dataclass(frozen=True)
class StackOutput:
    """The outputs of a stack for some tokens.

    ``tokens`` has a vector per token, B T ..., among them the last hidden state; ``sequences`` one per sequence, B
    ..., among them states of constant size; ``cache`` the whole state of each layer.
    """

    tokens: tuple[Tensor, ...]
    sequences: tuple[Tensor, ...] = ()
    cache: tuple[State, ...] = ()


Read = Callable[[Tensor, Tensor | None, Sequence[State] | None], StackOutput]
"""ids: B T (or another input), mask: B (P + T) or None for all real, cache or None."""


@dataclass(frozen=True)
class StackRunner:
    """A stack, as its spec states it, with its embedding, and its head if it has one.

    ``decodes``: it can continue from a cache. ``causal``: tokens see none after them. ``ordered``: positions or
    windows depend on the order of tokens. ``alone``: each token sees only itself. ``length`` is the number of tokens
    to read, and ``vocabulary`` the number of token ids, 0 for other inputs; ``draw`` returns rows of input for a
    count and a seed; ``prefix`` tells the stacks of a model apart in the names of checks; ``states`` is what
    each layer carries from call to call, if it decodes.
    """

    prefix: str
    stack: Stack
    decodes: bool
    causal: bool
    ordered: bool
    alone: bool
    embedding: EmbeddingKind
    length: int
    vocabulary: int
    draw: Callable[[int, int], Tensor]
    read: Read
    states: Sequence[Sequence[StateTensor]] = ()


def stack_runners(model: ZooModel, spec: Model) -> tuple[StackRunner, ...]:
    """The runners of a model's stacks.

    The decoder of an encoder-decoder attends to the same encoder input in every row.
    """
    found = []
    for name, stack in spec.stacks():
        if isinstance(model, DualEncoder):
            prefix, read = f"{name}: ", reads_one_of_two(model, spec, name)
        elif isinstance(model, VisionLanguage):
            prefix = f"{name}: "
            read = reads_images(model, spec) if name == "image" else reads_text(model, spec)
        elif isinstance(model, EncoderDecoder):
            prefix = f"{name}: "
            read = (
                reads_encoder(model)
                if name == "encoder"
                else reads_decoder(model, spec, draw_inputs(spec, "encoder", 1, 1))
            )
        else:
            prefix, read = "", reads_model(model, spec)
        embedding, context = spec.embedding_of(stack), spec.context_length_of(stack)
        length = vector_count(spec, stack) if embedding.any_length else context
        assert length is not None
        draw = functools.partial(draw_inputs, spec, name)
        ordered = _is_ordered(spec.position_of(stack), stack, length)
        decodes, vocabulary = name == "decoder", vocabulary_of(model, spec)
        whole = stack.bidirectional == "prompt"
        causal = spec.is_causal(name) and not whole
        alone = not whole and all(
            getattr(mixer, "window", None) == 1 and getattr(mixer, "block_summaries", None) is None
            for block in stack.layer_blocks()
            for mixer in block.mixers
        )
        found.append(
            StackRunner(
                prefix,
                stack,
                decodes,
                causal,
                ordered,
                alone,
                embedding,
                length,
                vocabulary,
                draw,
                read,
                model.decoder.states if decodes else (),  # type: ignore[arg-type, union-attr]
            )
        )
    return tuple(found)


def vocabulary_of(model: ZooModel, spec: Model) -> int:
    """The number of token ids that a runner takes, 0 for other inputs: those of text, without the placeholder of images."""
    vocabulary = spec.vocab_size or 0
    return max(1, vocabulary - 1) if isinstance(model, VisionLanguage) else vocabulary


def token_count(spec: Model, stack: Stack) -> int:
    """The number of tokens to read: within the context and below the rope switch length, two blocks and a token more where sums of
    blocks are seen."""
    attentions = [block.attention for block in stack.layer_blocks()]
    blocks = [each.block_summaries for each in attentions if isinstance(each, MultiHeadShape)]
    wanted = max([LENGTH, *(2 * each.size + 1 for each in blocks if each is not None)])
    return min(wanted, spec.context_length_of(stack) or wanted, spec.rope_switch_length or wanted)


def vector_count(spec: Model, stack: Stack) -> int:
    """The number of tokens to read, of samples' vectors, or of the patches of an image of two squares that are joined."""
    if isinstance(spec.embedding_of(stack), PackedPatches):
        assert isinstance(spec.connector, ConnectorKind)
        return 2 * spec.connector.square**2
    return token_count(spec, stack)


def packed(images: Tensor, spec: Model) -> tuple[Tensor, Tensor]:
    """Images of one size, M patches values, as the patches of all and the frames, rows and columns of each."""
    assert isinstance(spec.connector, ConnectorKind)
    square = spec.connector.square
    grid = torch.tensor([1, square, images.shape[1] // square], device=images.device)
    return images.flatten(0, 1), grid.expand(images.shape[0], 3)


def draw_inputs(spec: Model, name: StackName, rows: int, seed: int = 0) -> Tensor:
    """Random inputs for a stack: token ids, rows x length, or numbers in float64, rows x the sizes of an input.

    The token that the head looks for, if any, ends each row.
    """
    stack = getattr(spec, name)
    embedding, context = spec.embedding_of(stack), spec.context_length_of(stack)
    if embedding.takes_tokens:
        assert spec.vocab_size is not None
        ids = draw_ids(rows, token_count(spec, stack), spec.vocab_size, seed)
        token = (stack.head or spec.head).token_to_find
        if token is not None and ids.shape[1] > 2:
            ids[:, -1] = token
        return ids
    generator = torch.Generator().manual_seed(seed)
    shape = (rows, *embedding.input_shape(vector_count(spec, stack) if embedding.any_length else context))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _is_ordered(position: PositionKind, stack: Stack, length: int) -> bool:
    """Whether a bidirectional stack has positions, or a window narrower than ``length`` tokens."""
    attentions = [block.attention for block in stack.layer_blocks() if block.attention is not None]
    positions = [getattr(attention, "position", None) or position for attention in attentions]
    windows = [getattr(attention, "window", None) or 2 * length for attention in attentions]
    if stack.bidirectional == "prompt":  # whatever the windows
        windows = [2 * length for _ in attentions]
    placed = any(  # a token that sees itself only is at no distance
        not isinstance(each, NoPosition) and not _has_one_distance(each) and window > 1
        for each, window in zip(positions, windows, strict=True)
    )
    return position.embedded or placed or any(window > 1 and window // 2 < length - 1 for window in windows)


def _has_one_distance(position: PositionKind) -> bool:
    """Whether a position treats all distances alike."""
    return isinstance(position, RelativeKey) and position.before == position.after == 0


def reads_model(model: Encoder | Decoder, spec: Model) -> Read:
    """Runs an encoder or a decoder."""
    per_token = token_outputs(model.head, spec.output_width)

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[State] | None = None) -> StackOutput:
        with _inputs_of(model.head) as hidden:
            outputs = model(ids, mask) if isinstance(model, Encoder) else model(ids, mask, cache)
        return _reading(
            hidden[0], outputs, per_token, [] if isinstance(model, Encoder) else model.decoder.states
        )

    return read


def reads_text(model: VisionLanguage, spec: Model) -> Read:
    """Runs the decoder of a vision-language model on text: each id from that of the placeholder on stands for the next."""
    read_all, token = reads_model(model, spec), model.placeholder
    last = (spec.vocab_size or 1) - 1

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[State] | None = None) -> StackOutput:
        return read_all((ids + (ids >= token).to(ids.dtype)).clamp(max=last), mask, cache)

    return read


def reads_one_of_two(model: DualEncoder, spec: Model, name: StackName) -> Read:
    """Runs one encoder of a dual encoder."""
    head = model.get_submodule(f"{name}_head")
    per_token = token_outputs(head, spec.width_of(getattr(spec, name)))

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[State] | None = None) -> StackOutput:
        with _inputs_of(head) as hidden:
            outputs = model.encode(name, ids, mask)
        return _reading(hidden[0], outputs, per_token, [])

    return read


def reads_images(model: VisionLanguage, spec: Model) -> Read:
    """Runs the stack of images of a vision-language model, and the connector after it."""

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[State] | None = None) -> StackOutput:
        if spec.packs_images:
            images = packed(ids, spec)
            hidden, vectors = model.image_output(*images), model.see(*images)  # 1 (M N) E, (M V) D
            vectors = vectors.unflatten(0, (len(ids), -1))
            return StackOutput((hidden[0].unflatten(0, (len(ids), -1)),), (vectors,))
        hidden = model.image_output(ids)
        return StackOutput((hidden,), (model.connector(hidden, model.side),))

    return read


def reads_encoder(model: EncoderDecoder) -> Read:
    """Runs the encoder of an encoder-decoder."""

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[State] | None = None) -> StackOutput:
        return StackOutput((model.encode(ids, mask).last_hidden_state,))

    return read


def reads_decoder(
    model: EncoderDecoder, spec: Model, source: Tensor, source_mask: Tensor | None = None
) -> Read:
    """Runs the decoder of an encoder-decoder; source and source_mask: B S, or 1 S for all rows."""
    per_token = token_outputs(model.head, spec.output_width)

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[State] | None = None) -> StackOutput:
        rows = ids.shape[0]
        encoded = [
            (key.expand(rows, -1, -1, -1), value.expand(rows, -1, -1, -1))
            for key, value in model.encode(source, source_mask).present_key_values
        ]
        seen = None if source_mask is None else source_mask.expand(rows, -1)
        with _inputs_of(model.head) as hidden:
            outputs = model.decode(ids, encoded, seen, cache, mask)
        return _reading(hidden[0], outputs, per_token, model.decoder.states)

    return read


@contextmanager
def _inputs_of(head: nn.Module) -> Iterator[list[Tensor]]:
    """Record the input of a head within the context: the last hidden state of each run."""
    seen: list[Tensor] = []

    def see(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        seen.append(args[0])

    hook = head.register_forward_pre_hook(see)
    try:
        yield seen
    finally:
        hook.remove()


def _reading(
    hidden: Tensor,
    outputs: Outputs,
    per_token: frozenset[str],
    states: Sequence[Sequence[StateTensor]],
) -> StackOutput:
    tokens = tuple(output for name, output in outputs.items() if name in per_token)
    sequences = [output for name, output in outputs.items() if name not in per_token]
    cache = tuple(outputs.present_key_values)
    sequences += [x for declared, x in declared_state(states, cache) if not declared.grows]
    return StackOutput((hidden, *tokens), tuple(sequences), cache)


def draw_ids(rows: int, length: int, vocabulary: int, seed: int = 0) -> Tensor:
    """Random token ids, rows x length; neighbours differ in the first two columns, where the vocabulary allows."""
    ids = torch.randint(vocabulary, (rows, length), generator=torch.Generator().manual_seed(seed))
    if length > 1:
        ids[:, 1] = another(ids[:, 0], vocabulary)
    return ids


def another(ids: Tensor, vocabulary: int) -> Tensor:
    """Each token replaced by a different one."""
    return (ids + 1) % vocabulary


def split(reading: StackOutput, parts: int) -> list[StackOutput]:
    """The outputs of several batches of equal size that ran as one, batch by batch."""
    tokens = zip(*(x.chunk(parts) for x in reading.tokens), strict=True)
    sequences = (
        zip(*(x.chunk(parts) for x in reading.sequences), strict=True) if reading.sequences else [()] * parts
    )
    return [StackOutput(*each) for each in zip(tokens, sequences, strict=True)]


def apart(first: Sequence[Tensor], second: Sequence[Tensor]) -> float:
    """The largest difference between two lists of tensors, relative to the largest value of the same tensor."""
    differences = [_apart(a, b) for a, b in zip(first, second, strict=True) if a.numel()]
    return float(torch.stack(differences).max()) if differences else 0.0


def _apart(a: Tensor, b: Tensor) -> Tensor:
    largest = a.abs().max()
    return (a - b).abs().max() / torch.where(largest > 0, largest, 1.0)
