"""The inputs for comparing an export with its model.

Sizes differ from case to case, and none is a traced size: one row and several, a single token, lengths
beyond every window, ragged padding on either side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from exporters.target.static_cache import AROUND_IMAGE
from exporters.target.targets import Padding
from specs.model.model import Model
from specs.model.stack import Stack
from zoo.components.spans import words_of
from zoo.core.graph_names import HIDDEN_STATES
from zoo.core.token_inputs import token_inputs

ROWS = 3
"""The largest number of rows in a case."""

LONGEST = 300
"""The largest length of a case, whatever the model's reach: it keeps verification quick."""

FAR = 512
"""The length of a reduced model's one long case, if the context has room: angles and sums grow with the position, and so do
errors."""

PACKED_SHAPES = ((3, 2), (1, 6), (6, 1), (2, 3))
"""The grids of a case's images of any size, in vectors: different shapes with the same number of vectors."""

SOUGHT_SHARE = 0.2
"""The share of tokens that equal the head's token: several in some rows, none in others."""


WORD_SHARE = 0.7
"""The share of tokens that begin a word."""


@dataclass(frozen=True, eq=False)
class Batch:
    """The input of an embedding, by its ``name``: token ids with their mask (1 for real tokens) and types, batch x
    length.

    Images and audio have no types, and a mask only if they may have any length; ``frames`` is then the mask of their vectors.
    ``beside``: the other inputs, such as hidden states or boxes, by name, batch x length. ``coordinates``: the frame, row
    and column of each token, 3 x batch x length. ``grids``: the patch grid of each image of any size; the rows of the inputs
    are patches, and ``joined`` patches become one vector.
    """

    name: str
    inputs: Tensor
    mask: Tensor | None = None
    types: Tensor | None = None
    frames: Tensor | None = None
    beside: Mapping[str, Tensor] = field(default_factory=dict)
    coordinates: Tensor | None = None
    grids: Tensor | None = None
    joined: int = 1

    @property
    def rows(self) -> int:
        """The number of rows of the outputs."""
        return len(self.inputs) // self.joined

    @property
    def real(self) -> Tensor | None:
        """The mask of the vectors computed from the inputs."""
        return self.mask if self.frames is None else self.frames

    @property
    def shape(self) -> str:
        """The shape: batch x length, or batch x the sizes of an input."""
        return " x ".join(map(str, self.inputs.shape))

    def piece(self, start: int, end: int) -> Batch:
        """The tokens from ``start`` to ``end``, with the mask of all tokens before them."""
        assert self.mask is not None
        assert self.types is not None
        beside = {name: values[:, start:end] for name, values in self.beside.items()}
        inputs, types = self.inputs[:, start:end], self.types[:, start:end]
        coordinates = None if self.coordinates is None else self.coordinates[:, :, start:end]
        return Batch(self.name, inputs, self.mask[:, :end], types, beside=beside, coordinates=coordinates)

    def closed_up(self) -> Batch:
        """The same tokens with all padding at the end of the rows."""
        assert self.mask is not None
        assert self.types is not None
        order = self.mask.argsort(dim=1, descending=True, stable=True)
        inputs, mask, types = (values.gather(1, order) for values in (self.inputs, self.mask, self.types))
        rows = torch.arange(len(order))[:, None]
        beside = {name: values[rows, order] for name, values in self.beside.items()}
        return Batch(self.name, inputs, mask, types, beside=beside)


@dataclass(frozen=True, eq=False)
class Case:
    """One comparison.

    ``pieces``: the lengths of the calls after the first. ``encoder``: the other input of an encoder-decoder, or the images of
    a dual encoder or of a vision-language model. ``gap``: padding separates a row's prompt from its pieces and is ignored.
    ``buffer``: the number of slots of a cache whose past and present share memory. ``main`` cases exercise every weight,
    layer and limit and run on the model itself; a reduced model runs all cases. ``decided``: the rows to compare, None for
    all; in the other rows a router chooses between equal experts. ``reads_encoder``: whether the decoder attends to the
    encoder's output; False for dual encoders, and for images that replace a ``placeholder`` token. ``windows``: caches hold windows alone.
    """

    name: str
    batch: Batch
    pieces: tuple[int, ...] = ()
    encoder: Batch | None = None
    gap: bool = False
    buffer: int = 0
    main: bool = False
    decided: Tensor | None = None
    reads_encoder: bool = True
    placeholder: int | None = None
    windows: bool = False

    @property
    def ends(self) -> list[int]:
        """The end of each call: the first, then the pieces."""
        return list(itertools.accumulate(self.pieces, initial=self.batch.inputs.shape[1] - sum(self.pieces)))

    @property
    def shape(self) -> str:
        """The shape with its pieces, after the shape of the encoder's input."""
        rows, prompt = self.batch.inputs.shape[0], self.ends[0]
        lengths = " + ".join(map(str, (prompt, *self.pieces)))
        own = f"{rows} x ({lengths})" if self.pieces else self.batch.shape
        own += "" if self.decided is None else f", {int(self.decided.sum())} of {rows} rows"
        return (
            own
            if self.encoder is None
            else f"{self.encoder.shape} {'->' if self.reads_encoder else 'and'} {own}"
        )


def cases(spec: Model, padding: Padding = "either", cache_slots: int | None = None) -> Iterator[Case]:
    """Yield the comparisons for a model whose decoder takes padding on one side or on either.

    ``cache_slots`` is the number of slots of a static cache.
    """
    draw = _Draw(spec, cache_slots)
    if spec.architecture == "encoder-decoder":
        yield from _of_two_stacks(spec, draw)
        if padding == "right" and draw.steps_room > 4:
            yield from _ragged_steps(draw, draw.source(9, 4, 6), draw.source(3, 7))
    elif spec.architecture == "dual-encoder":
        yield from _of_pairs(spec, draw)
    elif spec.architecture == "vision-language":
        yield from _of_tokens_and_images(spec, draw, padding)
    elif spec.embedding_of(spec.last_stack).takes_tokens:
        either = padding == "either" or not spec.decodes
        of_rows = _of_equal_rows if padding == "none" else _of_tokens_at_the_front
        yield from _of_tokens(spec, draw) if either else of_rows(spec, draw)
    elif spec.embedding_of(spec.last_stack).any_length:
        yield from _of_recordings(spec, draw)
    else:
        yield Case("one input", draw.whole(1))
        yield Case("a batch", draw.whole(3), main=True)
        yield Case("an empty input", draw.whole(2, empty=True))


class _Draw:
    """Random batches for the stacks of a model, the same at every call of ``cases``."""

    def __init__(self, spec: Model, cache_slots: int | None) -> None:
        self.spec, self.cache_slots = spec, cache_slots
        self.long = max(24, _reach(spec) + 8)
        self.limited = _limit(spec) > 0
        self._generator = torch.Generator().manual_seed(20)

    def room(self, stack: Stack, most: int = LONGEST) -> int:
        """The largest number of tokens in a stack's cases, at most ``most``."""
        slots = self.cache_slots if stack is self.spec.last_stack else None
        return min(self.spec.context_length_of(stack) or most, slots or most, most)

    @property
    def steps_room(self) -> int:
        """The largest total length of decoding in pieces; 0 if nothing is decoded.

        Cached keys keep their angles, so a sequence that grows past a rope switch length differs from one full pass.
        """
        if not self.spec.decodes:
            return 0
        return min(self.room(self.spec.last_stack), self.spec.rope_switch_length or LONGEST)

    def pieces(self, *lengths: int, side: str = "right") -> Batch:
        """As ``tokens``, for decoding in pieces."""
        return self.tokens(*(min(length, self.steps_room) for length in lengths), side=side)

    def far(self, stack: Stack | None = None) -> Batch:
        """A row of many tokens."""
        return self.tokens(FAR, stack=stack, most=FAR)

    def tokens(
        self, *lengths: int, side: str = "right", stack: Stack | None = None, most: int = LONGEST
    ) -> Batch:
        """Rows of tokens of these lengths, cut to the available room, padded on one side."""
        stack = stack or self.spec.last_stack
        embedding = self.spec.embedding_of(stack)
        longest = self.spec.head.span_width
        kinds = 0 if longest else embedding.segment_count
        assert self.spec.vocab_size is not None
        lengths = tuple(min(length, self.room(stack, most)) for length in lengths)
        width = max(lengths)
        size = (len(lengths), width)
        ids = torch.randint(self.spec.vocab_size, size, generator=self._generator)
        token = (stack.head or self.spec.head).token_to_find
        if token is not None:
            sought = torch.rand(ids.shape, generator=self._generator) < SOUGHT_SHARE
            ids = torch.where(sought, token, ids)
        types = torch.randint(max(1, kinds), size, generator=self._generator)
        positions = torch.arange(width)
        rows = [positions < length if side == "right" else positions >= width - length for length in lengths]
        beside = {}
        if embedding.token_inputs and not longest:
            beside = token_inputs(embedding, torch.randint(2**16, size, generator=self._generator))
        if embedding.reads_hidden_states:
            hidden = (*size, self.spec.width_of(stack))
            beside[HIDDEN_STATES] = torch.randn(hidden, generator=self._generator)
        mask = torch.stack(rows).to(torch.int64)
        if longest is not None:
            begins = mask * (torch.rand(size, generator=self._generator) < WORD_SHARE)
            numbers = begins.cumsum(1) * begins
            beside |= words_of(numbers, max(1, int(numbers.max())), longest).inputs
        return Batch(embedding.input_name, ids, mask, types, beside=beside)

    def gap(self, lengths: Sequence[int], steps: int) -> Batch:
        """Rows of ``lengths`` tokens, padded on the right, with ``steps`` more tokens after the padding."""
        batch = self.pieces(*(max(lengths) + steps for _ in lengths))
        assert batch.mask is not None
        prompt = batch.inputs.shape[1] - steps
        positions = torch.arange(batch.inputs.shape[1])
        rows = [(positions < length) | (positions >= prompt) for length in lengths]
        return replace(batch, mask=torch.stack(rows).to(torch.int64))

    def whole(self, rows: int, *, empty: bool = False, stack: Stack | None = None) -> Batch:
        """Rows of images or audio; with ``empty``, the last row is all zeros."""
        stack = stack or self.spec.last_stack
        embedding = self.spec.embedding_of(stack)
        if embedding.packed:
            return random_images(self.spec, rows, self._generator, empty=empty)
        shape = embedding.input_shape(self.spec.context_length_of(stack))
        values = torch.randn((rows, *shape), generator=self._generator)
        if empty:
            values[-1] = 0
        return Batch(embedding.input_name, values)

    def recordings(
        self, *lengths: int, beyond: int = 0, stack: Stack | None = None, most: int = LONGEST
    ) -> Batch:
        """Rows of samples or frames for these numbers of vectors, padded on the right, plus ``beyond`` more, too few for another
        vector."""
        stack = stack or self.spec.last_stack
        embedding = self.spec.embedding_of(stack)
        lengths = tuple(min(length, self.room(stack, most)) for length in lengths)
        counts = [embedding.input_length(length) + beyond for length in lengths]
        _, *features = embedding.input_shape(1)
        values = torch.randn((len(counts), max(counts), *features), generator=self._generator)
        if not embedding.takes_mask:
            return Batch(embedding.input_name, values)
        samples, frames = (
            (torch.arange(max(ends)) < torch.tensor(ends)[:, None]).to(torch.int64)
            for ends in (counts, lengths)
        )
        return Batch(embedding.input_name, values, samples, frames=frames)

    def with_images(self, batch: Batch, starts: Sequence[tuple[int, int]], placeholder: int) -> Batch:
        """Tokens with one image's placeholders from each start (row, token), and no other placeholders."""
        assert self.spec.vocab_size is not None
        ids = without(batch.inputs, placeholder, self.spec.vocab_size)
        for row, start in starts:
            ids[row, start : start + vectors_per_image(self.spec)] = placeholder
        return replace(batch, inputs=ids)

    def source(self, *lengths: int) -> Batch:
        """The encoder's input: rows of tokens or samples of these lengths, or the same number of images or audio inputs."""
        encoder = self.spec.encoder
        assert encoder is not None
        embedding = self.spec.embedding_of(encoder)
        if embedding.takes_tokens:
            return self.tokens(*lengths, stack=encoder)
        if embedding.any_length:
            return self.recordings(*lengths, stack=encoder)
        return self.whole(len(lengths), stack=encoder)


def random_images(spec: Model, count: int, generator: torch.Generator, *, empty: bool = False) -> Batch:
    """Draw images for use among tokens; with ``empty``, the last is all zeros.

    Images of any size have different shapes with the same number of vectors.
    """
    embedding = spec.embedding_of(spec.stack("image"))
    if not embedding.packed:
        values = torch.randn((count, *embedding.input_shape(None)), generator=generator)
        values[count - empty :] = 0
        return Batch(embedding.input_name, values)
    connector, shapes = spec.image_connector, itertools.islice(itertools.cycle(PACKED_SHAPES), count)
    grids = [[1, rows * connector.square, columns * connector.square] for rows, columns in shapes]
    joined = connector.square**2
    rows = joined * math.prod(PACKED_SHAPES[0])
    values = torch.randn((count * rows, embedding.patch_width), generator=generator)
    values[(count - empty) * rows :] = 0
    sizes = torch.tensor(grids, dtype=torch.int64).reshape(count, 3)
    return Batch(embedding.input_name, values, grids=sizes, joined=joined)


def vectors_per_image(spec: Model) -> int:
    """The number of vectors of each image of a case."""
    return math.prod(PACKED_SHAPES[0]) if spec.packs_images else spec.vectors_per_image


def without(ids: Tensor, token: int, vocabulary: int) -> Tensor:
    """Token ids with one token replaced by the next in the vocabulary."""
    return torch.where(ids == token, (token + 1) % vocabulary, ids)


def _steps(most: int, room: int) -> tuple[int, ...]:
    return (1,) * min(most, room - 1)


def _of_tokens(spec: Model, draw: _Draw) -> Iterator[Case]:
    room = draw.steps_room
    yield Case("one token", draw.tokens(1))
    yield Case("one sequence", draw.tokens(7))
    yield Case("a batch, long", draw.tokens(draw.long, draw.long), main=draw.limited)
    yield Case("far from the start", draw.far())
    yield Case("padding right", draw.tokens(11, 6, 1), main=room <= 4)
    yield Case("padding left", draw.tokens(10, 5, 2, side="left"))
    yield Case("nothing but padding", draw.tokens(4, 0))
    if room > 4:
        yield Case("prompt, then steps", draw.pieces(9, 9), pieces=_steps(4, room))
        pieces = _steps(2, room)
        yield Case("padded prompt, then steps", draw.pieces(11, 6, side="left"), pieces, main=True)
        yield Case("padding between prompt and steps", draw.gap((8, 3, 1), len(pieces)), pieces, gap=True)
    if room > 6:
        yield Case("prompt in pieces", draw.pieces(12, 5, side="left"), pieces=(3, 1, 2))


def _of_recordings(spec: Model, draw: _Draw) -> Iterator[Case]:
    embedding = spec.embedding_of(spec.last_stack)
    yield Case("one vector", draw.recordings(1))
    yield Case("one recording", draw.recordings(7))
    yield Case(
        "a few samples more",
        draw.recordings(5, beyond=embedding.input_length(2) - embedding.input_length(1) - 1),
    )
    yield Case("a batch, long", draw.recordings(draw.long, draw.long), main=True)
    yield Case("far from the start", draw.recordings(FAR, most=FAR))
    if embedding.takes_mask:
        yield Case("padding right", draw.recordings(11, 6, 1), main=True)
        silent = draw.recordings(4, 4)
        assert silent.mask is not None
        assert silent.frames is not None
        rows = torch.tensor([[1], [0]])
        yield Case(
            "nothing but padding", replace(silent, mask=silent.mask * rows, frames=silent.frames * rows)
        )


def _of_tokens_at_the_front(spec: Model, draw: _Draw) -> Iterator[Case]:
    """Rows whose tokens are together at the front of the cache, followed by padding; every row has tokens."""
    room = draw.steps_room
    yield Case("one token", draw.tokens(1))
    yield Case("one sequence", draw.tokens(7))
    yield Case("a batch, long", draw.tokens(draw.long, draw.long), main=draw.limited)
    yield Case("far from the start", draw.far())
    yield Case("padding right", draw.tokens(11, 6, 1), main=room <= 4)
    if room > 4:
        yield Case("prompt, then steps", draw.pieces(9, 9), pieces=_steps(4, room))
        yield from _ragged_steps(draw)
    if room > 6:
        yield Case("prompt in pieces", draw.pieces(12), pieces=(3, 1, 2))


def _of_equal_rows(spec: Model, draw: _Draw) -> Iterator[Case]:
    """Rows of the same length, whose caches hold windows alone: prompts and steps end before, at and beyond each window."""
    room = draw.steps_room
    cases = [
        Case("one token", draw.tokens(1)),
        Case("one sequence", draw.tokens(7)),
        Case("a batch, long", draw.tokens(draw.long, draw.long), main=True),
        Case("far from the start", draw.far()),
    ]
    if room > 4:
        cases += [
            Case("prompt, then steps", draw.pieces(9, 9), _steps(6, room), main=True),
            Case("steps from the start", draw.pieces(12, 12), _steps(11, room)),
        ]
    if room > 6:
        cases += [
            Case("prompt in pieces", draw.pieces(24), pieces=(7, 1, 9, 2)),
            Case("in one buffer", draw.pieces(28, 28), _steps(10, room), buffer=33),
            Case("in one buffer, long", draw.pieces(60), (12, 1, *_steps(25, room)), buffer=61),
        ]
    yield from (replace(case, windows=True) for case in cases)


def _ragged_steps(draw: _Draw, *encoders: Batch) -> Iterator[Case]:
    """Rows that continue at different cache slots, with a growing cache and in one shared buffer."""
    steps = _steps(2, draw.steps_room)
    first, second = encoders or (None, None)
    padded, ragged = draw.gap((8, 3, 1), len(steps)), draw.gap((2, 9), len(steps))
    yield Case("padded prompt, then steps", padded, steps, first, gap=True, main=True)
    yield Case("in one buffer", ragged, steps, second, gap=True, buffer=ragged.inputs.shape[1] + 5)


def _of_pairs(spec: Model, draw: _Draw) -> Iterator[Case]:
    """Texts and images, in equal or different numbers. Every text has tokens: an empty one would match every image."""

    def pair(name: str, texts: Batch, images: int, *, empty: bool = False, main: bool = False) -> Case:
        seen = draw.whole(images, empty=empty, stack=spec.image)
        return Case(name, texts, encoder=seen, main=main, reads_encoder=False)

    yield pair("one text and one image", draw.tokens(1), 1)
    yield pair("one text and two images", draw.tokens(7), 2)
    yield pair("a batch, long", draw.tokens(draw.long, draw.long), 1, main=draw.limited)
    yield pair("far from the start", draw.far(), 1)
    yield pair("padding right", draw.tokens(11, 6, 1), 2, main=True)
    yield pair("padding left", draw.tokens(10, 5, 2, side="left"), 3)
    yield pair("an empty image", draw.tokens(5), 2, empty=True)


def _of_tokens_and_images(spec: Model, draw: _Draw, padding: Padding) -> Iterator[Case]:
    """Tokens with images among them: in one row or several, consecutive images, no images."""
    connector, vectors, room = spec.image_connector, vectors_per_image(spec), draw.steps_room

    def seen(case: Case, *starts: tuple[int, int], empty: bool = False) -> Case:
        """The case with an image at each start (row, token), if it has room for all of them."""
        images = draw.whole(len(starts), empty=empty, stack=spec.image)
        batch = draw.with_images(case.batch, starts, connector.token)
        return replace(case, batch=batch, encoder=images, reads_encoder=False, placeholder=connector.token)

    yield seen(Case("one token", draw.tokens(1)))
    yield seen(Case("one sequence without an image", draw.tokens(7)))
    if room < vectors + AROUND_IMAGE:
        return
    long = max(vectors + AROUND_IMAGE, min(draw.long, room))
    yield seen(Case("an image", draw.tokens(vectors + 3)), (0, 1))
    yield seen(
        Case("an image in each row, long", draw.tokens(long, long), main=draw.limited),
        (0, 2),
        (1, long - vectors - 1),
    )
    yield seen(Case("far from the start", draw.far()), (0, 1))
    yield seen(Case("an empty image", draw.tokens(vectors + 2)), (0, 0), empty=True)
    if room >= 2 * vectors + AROUND_IMAGE:
        two = draw.tokens(2 * vectors + 3, 5)
        yield seen(Case("two images in one row, none in the next", two), (0, 1), (0, vectors + 2))
    if padding == "either":
        left = draw.pieces(vectors + 6, vectors + 4, side="left")
        yield seen(Case("padded prompt, then steps", left, _steps(2, room), main=True), (0, 1), (1, 3))
    else:
        steps = _steps(2, room)
        ragged = draw.gap((vectors + 3, vectors + 1), len(steps))
        yield seen(Case("padded prompt, then steps", ragged, steps, gap=True, main=True), (0, 1), (1, 0))
    yield seen(Case("prompt in pieces", draw.pieces(vectors + 6), pieces=(3, 1)), (0, 1))


def _of_two_stacks(spec: Model, draw: _Draw) -> Iterator[Case]:
    source, room, long = spec.encoder, draw.steps_room, draw.long
    main = draw.limited or room <= 4
    assert source is not None
    if not spec.embedding_of(source).takes_tokens:
        heard = draw.source(long, long)
        heard.inputs[-1] = 0
        yield Case("one token", draw.tokens(1), encoder=draw.source(1))
        yield Case("a batch, long", draw.tokens(long, long), encoder=heard, main=main)
        yield Case("far from the start", draw.far(), encoder=draw.source(1))
        if room > 4:
            steps = _steps(2, room)
            yield Case(
                "prompt, then steps", draw.pieces(8, 8), pieces=steps, encoder=draw.source(9, 9), main=True
            )
        if room > 6:
            yield Case("prompt in pieces", draw.pieces(12), pieces=(3, 1, 2), encoder=draw.source(11))
        return

    def read(*lengths: int, side: str = "right") -> Batch:
        return draw.tokens(*lengths, side=side, stack=source)

    yield Case("one token", draw.tokens(1), encoder=read(1))
    yield Case("one sequence", draw.tokens(6), encoder=read(11))
    yield Case("a batch, long", draw.tokens(long, long), encoder=read(long, long), main=main)
    yield Case("far from the start", draw.far(), encoder=draw.far(source))
    yield Case("padding right", draw.tokens(5, 5, 5), encoder=read(12, 7, 1))
    yield Case("padding left", draw.tokens(4, 4), encoder=read(10, 3, side="left"))
    yield Case("nothing but padding", draw.tokens(3, 3), encoder=read(6, 0))
    if room > 4:
        steps = _steps(2, room)
        yield Case("prompt, then steps", draw.pieces(8, 8), pieces=steps, encoder=read(9, 4), main=True)
    if room > 6:
        yield Case("prompt in pieces", draw.pieces(12, 12), pieces=(3, 1, 2), encoder=read(3, 10))


def _reach(spec: Model) -> int:
    """The distance from which a positional bias is constant, or the length from which the rotation is."""
    positions = [position for _, stack in spec.stacks() for position in spec.positions_in(stack)]
    return max([*(position.farthest or 0 for position in positions), _limit(spec)])


def _limit(spec: Model) -> int:
    """The widest window or chunk, two of the largest blocks or the rope switch length, whichever is largest; reduced models have smaller
    ones."""
    mixers = [mixer for _, stack in spec.stacks() for block in stack.layer_blocks() for mixer in block.mixers]
    limits = [mixer.visible_limit or 0 for mixer in mixers]
    blocks = [2 * (mixer.summarized_tokens or 0) for mixer in mixers]
    return max([*limits, *blocks, spec.rope_switch_length or 0])
