"""Blocks: one layer of a stack.  Its formula places norms and residuals; :mod:`zoo.components.norm_placements` has others.

A residual stream that no norm rescales is kept in float32 or wider.

Shapes: batch B, query length T, width D.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

import specs.kinds.block as spec
from zoo.components.attention_variations import cross_attention
from zoo.components.mixer import Mixer, MixerContext, State, StateTensor
from zoo.context import BuildContext
from zoo.core.precision import wide
from zoo.registry import build_component, builds


@dataclass
class LayerCall:
    """The inputs of one call of a block other than x, and its output state.

    ``encoded`` holds the encoder's keys and values, if there is an encoder.
    """

    context: MixerContext
    past: State | None
    encoded: State | None
    present: State = ()


Branch = Callable[[Tensor, LayerCall], Tensor]
"""B T D -> B T D."""


class BlockExtension(Protocol):
    """A part of a block that runs around its formula."""

    def around(self, layer: Branch, x: Tensor, call: LayerCall) -> Tensor:
        """The output of the block with this part; ``layer`` is the block without it."""


class Block(nn.Module):
    """The parts of every block, and its branches: mixers side by side, attention to an encoder, and a feed-forward."""

    def __init__(self, spec: spec.BlockParts, context: BuildContext) -> None:
        super().__init__()
        self.branch_names = spec.branches(cross=context.cross)
        self.attention = self.mixer = self.cross_attention = self.feed_forward = None
        if spec.attention is not None:
            self.attention = build_component(spec.attention, self.attention_context(context))
        if spec.mixer is not None:
            self.mixer = build_component(spec.mixer, context)
        if context.cross:
            self.cross_attention = cross_attention(spec.cross_attention or spec.attention, context)  # type: ignore[arg-type]
        if spec.feed_forward is not None:
            self.feed_forward = build_component(spec.feed_forward, context)
        self.residual = build_component(spec.residual, context)
        self.dropout = nn.Dropout(spec.dropout)
        self.extension_names: tuple[str, ...] = ()
        self.scale_names: dict[str, str] = {}
        self.residual_names: dict[str, str] = {}
        self.note_states()

    def forward(
        self, x: Tensor, context: MixerContext, past: State | None = None, encoded: State | None = None
    ) -> tuple[Tensor, State]:
        """x: B T D, past and encoded: the state of this layer, and its keys and values of the encoder -> B T D and state."""
        call, layer = LayerCall(context, past, encoded), self.layer
        for extension in self.extensions:
            layer = functools.partial(extension.around, layer)
        x = layer(x, call)
        return x, call.present

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        """The formula that places norms and residuals: B T D -> B T D."""
        raise NotImplementedError

    def attention_context(self, context: BuildContext) -> BuildContext:
        """The context in which the attention is built."""
        return context

    def extend(self, name: str, extension: nn.Module, *, innermost: bool = False) -> None:
        """Add a :class:`BlockExtension` under a name, around those before it unless it is the innermost."""
        self.add_module(name, extension)
        names = self.extension_names
        self.extension_names = (name, *names) if innermost else (*names, name)

    @property
    def extensions(self) -> list[BlockExtension]:
        """The extensions, from the innermost to the outermost."""
        return [self.get_submodule(name) for name in self.extension_names]  # type: ignore[misc]

    def add_norms(self, spec: spec.BlockParts, context: BuildContext, suffix: str = "norm") -> None:
        """A norm for each branch, named after it."""
        for branch in self.branch_names:
            self.add_module(f"{branch}_{suffix}", build_component(spec.norm_of(branch), context))

    def norm_of(self, branch: str, suffix: str = "norm") -> nn.Module:
        """The norm that ``add_norms`` gave a branch."""
        return self.get_submodule(f"{branch}_{suffix}")

    def residual_of(self, branch: str) -> nn.Module:
        """The residual connection of a branch: its own by ``residual_names``, or the block's."""
        return self.get_submodule(self.residual_names.get(branch, "residual"))

    def scaled(self, branch: str, output: Tensor) -> Tensor:
        """The output of a branch, scaled by the module that ``scale_names`` has for it, if any: B T D -> B T D."""
        name = self.scale_names.get(branch)
        return output if name is None else self.get_submodule(name)(output)

    def joined(self, branch: str, x: Tensor, output: Tensor) -> Tensor:
        """The stream with the scaled output of a branch, after dropout: B T D and B T D -> B T D."""
        return self.residual_of(branch)(x, self.dropout(self.scaled(branch, output)))

    @property
    def mixers(self) -> tuple[Mixer, ...]:
        """Those side by side in the first branch; their outputs are added."""
        return tuple(mixer for mixer in (self.attention, self.mixer) if mixer is not None)  # type: ignore[misc]

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """The state of the mixers, in their order."""
        return tuple(tensor for state in self.states for tensor in state)

    def note_states(self) -> None:
        """Note the state of each mixer: as it is built, and again where its heads are cut, never while it runs or is traced."""
        self.states = [mixer.state for mixer in self.mixers]

    def branches(self) -> Iterator[tuple[str, Branch]]:
        """The branches by name, in order."""
        for name in self.branch_names:
            yield name, self.branch(name)

    def branch(self, name: str) -> Branch:
        """A branch by its name."""
        return {"cross_attention": self._cross, "feed_forward": self._feed}.get(name, self._mix)

    def _mix(self, x: Tensor, call: LayerCall) -> Tensor:
        """The sum of the mixers' outputs: B T D -> B T D."""
        return functools.reduce(operator.add, [self._pass(i, x, call) for i in range(len(self.states))])

    def _pass(self, index: int, x: Tensor, call: LayerCall) -> Tensor:
        """The output of a mixer; mixers pass in their order: B T D -> B T D."""
        begin = sum(map(len, self.states[:index]))
        past = None if call.past is None else call.past[begin : begin + len(self.states[index])]
        output, state = self.mixers[index](x, call.context, past)
        call.present = call.present + state
        return output

    def _cross(self, x: Tensor, call: LayerCall) -> Tensor:
        return self.cross_attention(x, call.context, call.encoded)  # type: ignore[misc]

    def _feed(self, x: Tensor, call: LayerCall) -> Tensor:
        return self.feed_forward(x)  # type: ignore[misc]


@builds(spec.PreNorm)
class PreNorm(Block):
    """x + f(norm(x)) for each branch f."""

    def __init__(self, spec: spec.PreNorm, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.add_norms(spec, context)

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        x = wide(x)
        for name, branch in self.branches():
            x = self.joined(name, x, branch(self.norm_of(name)(x), call))
        return x
