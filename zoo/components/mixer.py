"""What mixes the tokens of a sequence, and the state that it carries from call to call.

Shapes: batch B, new tokens T, past length P, key length S = P + T, width D.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from zoo import functional
from zoo.components.block_summaries import TokenBlocks
from zoo.components.position import Distances, Position

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
        """Whether a tensor has these sizes."""
        sizes = values.shape[1:]
        return len(sizes) == len(self.dims) and all(
            isinstance(dim, str) or dim == size for dim, size in zip(self.dims, sizes, strict=True)
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


def check_state(states: Sequence[Sequence[StateTensor]], given: Sequence[State]) -> None:
    """Raise :class:`ValueError` unless ``given`` is the state of each layer."""
    if len(given) != len(states):
        raise ValueError(
            f"past_key_values must hold the state of each of the {len(states)} layers; it has {len(given)} entries"
        )
    for layer, (declared, values) in enumerate(zip(states, given, strict=True)):
        fits = len(values) == len(declared) and all(map(StateTensor.holds, declared, values))
        if not fits:
            wanted = ", ".join(each.description for each in declared) or "no tensors"
            found = ", ".join(" x ".join(map(str, each.shape)) for each in values) or "no tensors"
            raise ValueError(
                f"past_key_values[{layer}] must hold the state of layer {layer}: {wanted}; it has {found}. "
                "Pass what an earlier call returned as present_key_values."
            )


class BiasKey(NamedTuple):
    """What identifies a bias: the name of the position that acts on the scores, and the limits of what a query
    sees: windows of tokens and of patches, and chunks."""

    position: str
    window: int | None = None
    patch_window: int | None = None
    chunk: int | None = None


class BlocksKey(NamedTuple):
    """What identifies blocks of tokens: the name of the position that has their biases, and their size."""

    position: str
    size: int


@dataclass(frozen=True)
class MixerContext:
    """The inputs that the mixers of all layers of a stack share in one forward pass.

    positions: B T (or 1 T), or along several axes A B T, biases and cross_bias: broadcast to B H T S, or None.  ``position`` is the stack's.
    distances: of each position, by name, what its attentions compare queries and keys with.
    gated: by the name of its position, a bias that each layer scales and adds to those, (B or 1) H T S.
    real: B T, 1 for real tokens and 0 for padding, which enters no state; None if all are real.
    start: B, the first slot of the new tokens in a static cache; None for a growing cache.
    inputs: B T D, what the first layer reads: the embedding; tokens: B T, the new tokens that a decoder embeds.
    blocks: of tokens, whose sums attentions see.
    reused: all keys and values of an earlier layer, B G S K twice, for a layer without its own.
    first_values: the values of the first RWKV-7 layer of each width, B T (H K), which later layers mix with their own.
    """

    position: Position
    positions: Tensor
    inputs: Tensor
    biases: Mapping[BiasKey, Tensor | None]
    distances: Mapping[str, Distances | None] = field(default_factory=dict)
    cross_bias: Tensor | None = None
    real: Tensor | None = None
    start: Tensor | None = None
    gated: Mapping[str, Tensor | None] = field(default_factory=dict)
    blocks: Mapping[BlocksKey, TokenBlocks] = field(default_factory=dict)
    reused: State = ()
    tokens: Tensor | None = None
    first_values: dict[int, Tensor] = field(default_factory=dict)
    _alignments: dict[int, functional.TokenAlignment | None] = field(default_factory=dict)

    def alignment(self, width: int) -> functional.TokenAlignment | None:
        """The permutation that keeps padding out of convolutions over ``width`` tokens: one for all layers."""
        if width not in self._alignments:
            self._alignments[width] = functional.token_alignment(self.real, width)
        return self._alignments[width]

    def reusing(self, state: State) -> MixerContext:
        """The same for a layer that attends to the keys and values of another, which left this state."""
        return replace(self, reused=state[:2])

    def cached(self, past: State | None, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """The cached keys and values followed by the new ones, B G T K each: B G S K."""
        if past is None:
            return key, value
        if self.start is None:
            return functional.append(past[0], key), functional.append(past[1], value)
        return functional.write(past[0], key, self.start), functional.write(past[1], value, self.start)


class Mixer(nn.Module):
    """Mixes tokens: the first branch of a block, or part of it.

    ``counts_tokens`` says that it computes something else for the first token, which its state does not tell.
    """

    counts_tokens: ClassVar[bool] = False

    @property
    @abstractmethod
    def state(self) -> tuple[StateTensor, ...]:
        """The tensors that it carries from call to call."""

    @abstractmethod
    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T D, past: the state that an earlier call left, or None at the start -> B T D, and the state."""
