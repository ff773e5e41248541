"""Mixers of the tokens of a sequence, and the state that they carry from call to call.

Shapes: batch B, new tokens T, past length P, key length S = P + T, width D.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from zoo import functional
from zoo.components.position import Position

State = tuple[Tensor, ...]
"""The state of one layer, B and the dims of each tensor."""

LENGTH = "length"
"""The dim of a state that grows by one with every token."""


@dataclass(frozen=True)
class StateTensor:
    """A tensor that a mixer carries from call to call: its dims after the batch, :data:`LENGTH` where tokens are.

    A tensor with a length begins with no token, and any other with zeros.  ``dtype`` is that of the weights unless given.
    """

    name: str
    dims: tuple[int | str, ...]
    dtype: torch.dtype | None = None

    @property
    def grows(self) -> bool:
        """Whether it holds something for every token."""
        return LENGTH in self.dims

    @property
    def values(self) -> int:
        """The number of values of a row: in all, or per token where it grows."""
        sizes = [dim for dim in self.dims if isinstance(dim, int)]
        return torch.Size(sizes).numel()

    @property
    def description(self) -> str:
        """The name and the sizes, such as ``key B x 2 x length x 8``."""
        return f"{self.name} {' x '.join(map(str, ('B', *self.dims)))}"

    def holds(self, values: Tensor) -> bool:
        """Whether a tensor has these sizes. A process of tensor parallelism holds a part of the heads."""
        sizes = values.shape[1:]
        return len(sizes) == len(self.dims) and all(
            isinstance(dim, str) or dim == size or (axis == 0 < size and dim % size == 0)
            for axis, (dim, size) in enumerate(zip(self.dims, sizes, strict=True))
        )

    def shape(self, batch: int, length: int) -> tuple[int, ...]:
        """The shape for a batch, with ``length`` tokens."""
        return (batch, *(length if isinstance(dim, str) else dim for dim in self.dims))


def declared_state(
    states: Sequence[Sequence[StateTensor]], values: Sequence[State]
) -> list[tuple[StateTensor, Tensor]]:
    """Every tensor in the state of all layers, with its declaration."""
    return [
        pair
        for layer, tensors in zip(states, values, strict=True)
        for pair in zip(layer, tensors, strict=True)
    ]


def check_state(states: Sequence[Sequence[StateTensor]], past: Sequence[State]) -> None:
    """Raise :class:`ValueError` unless ``past`` is the state of each layer."""
    if len(past) != len(states):
        raise ValueError(
            f"past_key_values must hold the state of each of the {len(states)} layers; it has {len(past)} entries"
        )
    for layer, (declared, values) in enumerate(zip(states, past, strict=True)):
        fits = len(values) == len(declared) and all(map(StateTensor.holds, declared, values))
        if not fits:
            wanted = ", ".join(tensor.description for tensor in declared) or "no tensors"
            held = ", ".join(" x ".join(map(str, tensor.shape)) for tensor in values) or "no tensors"
            raise ValueError(
                f"past_key_values[{layer}] must hold the state of layer {layer}: {wanted}; it has {held}. "
                "Pass what an earlier call returned as present_key_values."
            )


ONE_KEY = "queries, keys and distances in windows of one token"
"""The parameters that get no gradient where each query sees a single key."""


class BiasKey(NamedTuple):
    """The key of a bias: the name of the position that acts on the scores, and the limits of the keys that a query sees."""

    position: str
    window: int | None = None
    patch_window: int | None = None
    chunk: int | None = None


class QueryKeyPositions(NamedTuple):
    """The positions of all queries and keys of a pass, (B or 1) T and (B or 1) S, the padding mask of the keys, B S with 1 for
    real tokens or None, and a tensor whose dtype the scores have."""

    queries: Tensor
    keys: Tensor
    mask: Tensor | None
    like: Tensor


@dataclass(frozen=True)
class AttentionContext:
    """The inputs that all attentions of a stack share in one forward pass.

    position: the stack's.  biases and cross_bias: broadcast to B H T S, or None.
    shared: values that attentions and positions computed for all layers, by key.
    start: B, the first slot of the new tokens in a static cache; None for a growing cache.
    """

    position: Position
    biases: Mapping[BiasKey, Tensor | None]
    cross_bias: Tensor | None
    shared: Mapping[Hashable, Any]
    start: Tensor | None

    def position_of(self, attention: AttentionMixer) -> Position:
        """The position that acts inside an attention: its own or the stack's."""
        return attention.position or self.position

    def score_bias(self, attention: AttentionMixer, x: Tensor, query: Tensor, key: Tensor) -> Tensor | None:
        """The mask, and what the position adds to the scores of one attention: B T D, B H T K and B G S K -> broadcast to
        B H T S, or None."""
        position = self.position_of(attention)
        bias = self.biases[attention.bias_key(position)]
        return position.layer_bias(bias, self.shared.get(position.name), attention, x, query, key)

    def cached(self, past: State | None, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """The cached keys and values followed by the new ones, B G T K each: B G S K."""
        if past is None:
            return key, value
        if self.start is None:
            return functional.append(past[0], key), functional.append(past[1], value)
        return functional.write(past[0], key, self.start), functional.write(past[1], value, self.start)


@dataclass(frozen=True)
class MixerContext:
    """The inputs that all mixers of a stack share in one forward pass.

    positions: B T (or 1 T), or along several axes A B T.
    real: B T, 1 for real tokens and 0 for padding, which enters no state; None if all are real.
    embedded: B T D, the input of the first layer.  ids: B T, the new tokens; None for other inputs.
    left: tensors that layers leave for later ones, by key.
    """

    positions: Tensor
    real: Tensor | None
    embedded: Tensor
    ids: Tensor | None
    attention: AttentionContext
    left: dict[Hashable, Tensor] = field(default_factory=dict)
    _alignments: dict[int, functional.TokenAlignment | None] = field(default_factory=dict)

    def alignment(self, width: int) -> functional.TokenAlignment | None:
        """The permutation that keeps padding out of convolutions over ``width`` tokens: one for all layers."""
        if width not in self._alignments:
            self._alignments[width] = functional.token_alignment(self.real, width)
        return self._alignments[width]


class Mixer(nn.Module):
    """Mixes tokens: the first branch of a block, or part of it.

    ``counts_tokens``: whether the first token is special and the state alone cannot identify it.
    """

    counts_tokens: ClassVar[bool] = False

    @property
    def visible_limit(self) -> int | None:
        """The number of tokens that a query sees; None for no limit."""
        return None

    @property
    def latent_width(self) -> int | None:
        """The number of values of a token that would do instead of its state; None if none would."""
        return None

    @property
    @abstractmethod
    def state(self) -> tuple[StateTensor, ...]:
        """The tensors that it carries from call to call."""

    @abstractmethod
    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T D, past: the state that an earlier call left, or None at the start -> B T D, and the state."""


class AttentionMixer(Mixer):
    """Attention: a mixer of keys and values on which a position acts.

    ``position`` is its own, possibly shared with other layers, or None for the stack's.
    """

    heads: int
    window: int | None = None
    """The number of tokens that a query sees, as in the spec; None for no limit."""
    chunk: int | None = None
    """The size of the chunks that queries see; None for no limit."""
    patch_window: int | None = None
    """The side of the windows of patches; None for no limit."""
    scores_one_key: bool = False
    """Whether each query sees a single key, whose weight is 1 at any score."""

    def __init__(self) -> None:
        super().__init__()
        self.position: Position | None = None

    @property
    @abstractmethod
    def rotated_width(self) -> int:
        """The width of queries and keys that the position rotates."""

    @property
    def visible_limit(self) -> int | None:
        return self.window or self.chunk

    def bias_key(self, position: Position) -> BiasKey:
        """The key of its bias, given the position that acts inside it."""
        return BiasKey(position.name, self.window, self.patch_window, self.chunk)

    def shared(self, position: Position) -> Mapping[Hashable, Callable[[QueryKeyPositions], Any]]:
        """Functions of the positions that the stack calls before its first layer, once for all layers with the same key."""
        return {position.name: lambda tokens: position.distances(tokens.queries, tokens.keys, tokens.like)}
