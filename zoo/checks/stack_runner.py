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

from specs.kinds.embedding import EmbeddingKind
from specs.kinds.position import PositionKind
from specs.model.model import Model
from specs.model.stack import Stack, StackName
from zoo.builder import ZooModel
from zoo.components.head import token_outputs
from zoo.components.mixer import State, StateTensor, declared_state
from zoo.core.graph_names import HIDDEN_STATES
from zoo.core.token_inputs import token_inputs
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


SourceReader = Callable[..., Read]
"""source: B S, or 1 S for all rows, and its mask or None -> how the decoder reads beside it."""


@dataclass(frozen=True)
class StackRunner:
    """A stack, as its spec states it, with its embedding, and its head if it has one.

    ``decodes``: it can continue from a cache. ``causal``: tokens see none after them. ``ordered``: positions or
    windows depend on the order of tokens. ``alone``: each token sees only itself. ``length`` is the number of tokens
    to read, and ``vocabulary`` the number of token ids, 0 for other inputs; ``draw`` returns rows of input for a
    count and a seed; ``prefix`` tells the stacks of a model apart in the names of checks; ``states`` is what
    each layer carries from call to call, if it decodes.  ``read_beside`` runs a decoder beside an input of its encoder, and
    ``read_as_image`` one that sees images, on the ids of tokens in the places of an image's vectors -> B T D.
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
    read_beside: SourceReader | None = None
    read_as_image: Callable[[Tensor], Tensor] | None = None


def stack_runners(model: ZooModel, spec: Model) -> tuple[StackRunner, ...]:
    """The runners of a model's stacks.

    The decoder of an encoder-decoder attends to the same encoder input in every row.
    """
    return tuple(_runner(model, spec, name, stack) for name, stack in spec.stacks())


def _runner(model: ZooModel, spec: Model, name: StackName, stack: Stack) -> StackRunner:
    embedding, context = spec.embedding_of(stack), spec.context_length_of(stack)
    length = vector_count(spec, stack) if embedding.any_length else context
    assert length is not None
    decodes, whole = name == "decoder", stack.sees_prompt
    mixers = [mixer for block in stack.layer_blocks() for mixer in block.mixers]
    return StackRunner(
        f"{name}: " if len(list(spec.stacks())) > 1 else "",
        stack,
        decodes,
        causal=spec.is_causal(name) and not whole,
        ordered=_is_ordered(spec.position_of(stack), stack, length),
        alone=stack.bidirectional != "prompt" and all(mixer.sees_itself_only for mixer in mixers),
        embedding=embedding,
        length=length,
        vocabulary=vocabulary_of(spec),
        draw=functools.partial(draw_inputs, spec, name),
        read=reader(model, spec, name),
        states=model.decoder.states if decodes else (),  # type: ignore[arg-type, union-attr]
        read_beside=source_reader(model, spec) if decodes else None,
        read_as_image=image_reader(model) if decodes else None,
    )


def vocabulary_of(spec: Model) -> int:
    """The number of token ids that a runner takes, without the placeholder of images; 0 for other inputs."""
    vocabulary = spec.vocab_size or 0
    return vocabulary if spec.connector is None else max(1, vocabulary - 1)


def token_count(spec: Model, stack: Stack) -> int:
    """The number of tokens to read: within the context and below the rope switch length, two blocks and a token more where sums of
    blocks are seen."""
    mixers = (mixer for block in stack.layer_blocks() for mixer in block.mixers)
    wanted = max([LENGTH, *(2 * size + 1 for mixer in mixers if (size := mixer.summarized_tokens))])
    return min(wanted, spec.context_length_of(stack) or wanted, spec.rope_switch_length or wanted)


def vector_count(spec: Model, stack: Stack) -> int:
    """The number of tokens to read, of samples' vectors, or of the patches of an image of two squares that are joined."""
    if spec.embedding_of(stack).packed:
        return 2 * spec.image_connector.square**2
    return token_count(spec, stack)


def packed(images: Tensor, spec: Model) -> tuple[Tensor, Tensor]:
    """Images of one size, M patches values, as the patches of all and the frames, rows and columns of each."""
    square = spec.image_connector.square
    grid = torch.tensor([1, square, images.shape[1] // square], device=images.device)
    return images.flatten(0, 1), grid.expand(images.shape[0], 3)


def draw_inputs(spec: Model, name: StackName, rows: int, seed: int = 0) -> Tensor:
    """Random inputs for a stack: token ids, rows x length, or numbers in float64, rows x the sizes of an input.

    The token that the head looks for, if any, ends each row.
    """
    stack = dict(spec.stacks())[name]
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
    positions = [attention.own_position or position for attention in attentions]
    windows = [attention.sliding_window or 2 * length for attention in attentions]
    if stack.sees_prompt:  # whatever the windows, or on both sides of each token
        windows = [2 * (length if stack.bidirectional == "prompt" else window) for window in windows]
    placed = any(  # a token that sees itself only is at no distance
        own.tells_order and window > 1 for own, window in zip(positions, windows, strict=True)
    )
    return position.embedded or placed or any(window > 1 and window // 2 < length - 1 for window in windows)


@functools.singledispatch
def reader(model: nn.Module, spec: Model, name: StackName) -> Read:
    """Runs one stack of a model, with what follows it."""
    raise TypeError(type(model))


@reader.register(Encoder)
@reader.register(Decoder)
def _reads_model(model: Encoder | Decoder, spec: Model, name: StackName) -> Read:
    """Runs an encoder or a decoder."""
    per_token = token_outputs(model.head, spec.output_width)
    queries = 0 if spec.last_stack.queries is None else spec.last_stack.queries.count

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[State] | None = None) -> StackOutput:
        past = (cache,) if name == "decoder" else ()
        with _inputs_of(model.head) as hidden:
            outputs = model(ids, mask, *past, **beside(spec, ids))
        if spec.head.span_width is not None:  # whose sizes depend on the other rows
            outputs = Outputs(model.head.sums(outputs, ids, mask))  # type: ignore[operator]
        states = model.decoder.states if name == "decoder" else []  # type: ignore[union-attr]
        own = hidden[0][:, : hidden[0].shape[1] - queries]
        return _reading(own, outputs, per_token, states)  # type: ignore[arg-type]

    return read


@reader.register
def _(model: VisionLanguage, spec: Model, name: StackName) -> Read:
    return _reads_images(model, spec) if name == "image" else _reads_text(model, spec)


def _reads_text(model: VisionLanguage, spec: Model) -> Read:
    """Runs the decoder of a vision-language model on text; ids from the placeholder on stand for the next id."""
    read_all, token = _reads_model(model, spec, "decoder"), model.placeholder
    last = (spec.vocab_size or 1) - 1

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[State] | None = None) -> StackOutput:
        return read_all((ids + (ids >= token).to(ids.dtype)).clamp(max=last), mask, cache)

    return read


@reader.register
def _(model: DualEncoder, spec: Model, name: StackName) -> Read:
    head = model.get_submodule(f"{name}_head")
    per_token = token_outputs(head, spec.width_of(dict(spec.stacks())[name]))

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[State] | None = None) -> StackOutput:
        with _inputs_of(head) as hidden:
            outputs = model.encode(name, ids, mask)
        return _reading(hidden[0], outputs, per_token, [])

    return read


def _reads_images(model: VisionLanguage, spec: Model) -> Read:
    """Runs the stack of images of a vision-language model, and the connector after it."""

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[State] | None = None) -> StackOutput:
        if spec.packs_images:
            images = packed(ids, spec)
            hidden, vectors = model.image_output(*images), model.encode_images(*images)  # 1 (M N) E, (M V) D
            vectors = vectors.unflatten(0, (len(ids), -1))
            return StackOutput((hidden[0].unflatten(0, (len(ids), -1)),), (vectors,))
        hidden = model.image_output(ids)
        return StackOutput((hidden,), (model.connector(hidden, model.side),))

    return read


@reader.register
def _(model: EncoderDecoder, spec: Model, name: StackName) -> Read:
    if name == "decoder":
        return _reads_decoder(model, spec, draw_inputs(spec, "encoder", 1, 1))

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[State] | None = None) -> StackOutput:
        return StackOutput((model.encode(ids, mask).last_hidden_state,))

    return read


@functools.singledispatch
def source_reader(model: nn.Module, spec: Model) -> SourceReader | None:
    """Runs the decoder of an encoder-decoder beside another input of the encoder; None for other models."""
    return None


@source_reader.register
def _(model: EncoderDecoder, spec: Model) -> SourceReader:
    return functools.partial(_reads_decoder, model, spec)


@functools.singledispatch
def image_reader(model: nn.Module) -> Callable[[Tensor], Tensor] | None:
    """Runs the decoder of a vision-language model on tokens in the places of an image's vectors; None for other models."""
    return None


@image_reader.register
def _(model: VisionLanguage) -> Callable[[Tensor], Tensor]:
    def read(ids: Tensor) -> Tensor:
        x = model.embed(ids)
        ahead = model.ahead(torch.full_like(ids, model.placeholder))
        decoded = model.positions(x, None, None, None).with_lookahead(ahead)
        hidden, _ = model.decoder(x, decoded)
        return hidden

    return read


def _reads_decoder(
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

    def record(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        seen.append(args[0])

    hook = head.register_forward_pre_hook(record)
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


def beside(spec: Model, ids: Tensor) -> dict[str, Tensor]:
    """The inputs of a model beside some tokens, each a function of its token: hidden states, B T D in float64, tasks and boxes."""
    if not spec.reads_hidden_states:
        return token_inputs(spec.embedding_of(spec.last_stack), ids)
    columns = torch.arange(1, spec.d_model + 1, dtype=torch.float64, device=ids.device)
    return {HIDDEN_STATES: torch.sin((ids[..., None] + 1) * columns)}


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
    return [StackOutput(*outputs) for outputs in zip(tokens, sequences, strict=True)]


def relative_difference(first: Sequence[Tensor], second: Sequence[Tensor]) -> float:
    """The largest difference between two lists of tensors, relative to the largest value of the same tensor."""
    differences = [_relative_difference(a, b) for a, b in zip(first, second, strict=True) if a.numel()]
    return float(torch.stack(differences).max()) if differences else 0.0


def _relative_difference(a: Tensor, b: Tensor) -> Tensor:
    largest = a.abs().max()
    return (a - b).abs().max() / torch.where(largest > 0, largest, 1.0)
