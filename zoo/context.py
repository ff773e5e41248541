"""The context in which a component is built: facts that flow down, so that no spec repeats them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from torch import nn

from specs.kinds.embedding import PatchGrid
from specs.kinds.position import NoPosition, PositionKind
from specs.model.model import Model
from specs.model.stack import StackName

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class BuildContext:
    """Widths and place of a component.

    ``d_model`` is the width of the stream that the component reads and writes, ``layer`` its index in a
    stack of ``layers``; ``cross`` says that the stack attends to an encoder, whose width is ``encoder_width``;
    ``input_width`` is that of what an attention or a feed-forward reads, where it is not that of the stream;
    ``fixed_length`` says that every input is as long as context_length, as images and spectrograms are; ``patch_grid`` are
    the patches that the last vectors of an image are made of.
    ``heads`` is there where all that act alike have equally many: the layers of a stack, as a position is told;
    ``head_width`` is that of the one attention in which a position acts.
    ``position_kind`` is the stack's as its spec has it, ``position`` the one that acts inside a layer's attention where
    that is not the stack's.
    ``summarized`` says that an attention in which the position acts sees sums of blocks.
    ``modules`` are those that several layers of a stack share.  ``token`` is the token table, which a head may score against or share, and a second embedding shares.
    """

    d_model: int
    context_length: int | None
    causal: bool
    cross: bool
    encoder_width: int | None = None
    input_width: int | None = None
    fixed_length: bool = False
    patch_grid: PatchGrid | None = None
    layers: int = 1
    layer: int = 0
    heads: int | None = None
    head_width: int | None = None
    vocab_size: int | None = None
    position_kind: PositionKind = field(default_factory=NoPosition)
    token: nn.Embedding | None = None
    summarized: bool = False
    modules: dict[str, nn.Module] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: Model, stack: StackName) -> BuildContext:
        """The context of a model's stack."""
        cross = stack == "decoder" and spec.architecture == "encoder-decoder"
        part = getattr(spec, stack)
        return cls(
            spec.width_of(part),
            spec.context_length_of(part),
            causal=spec.is_causal(stack),
            cross=cross,
            encoder_width=spec.width_of(spec.encoder) if cross and spec.encoder is not None else None,
            fixed_length=not spec.embedding_of(part).any_length,
            patch_grid=spec.embedding_of(part).patch_grid,
            vocab_size=spec.vocab_size,
            position_kind=spec.position_of(part),
        )

    @property
    def reads(self) -> int:
        """The width of the input of an attention or a feed-forward."""
        return self.input_width or self.d_model

    def shared(self, name: str, build: Callable[[], nn.Module]) -> nn.Module:
        """The module of this name that the layers of a stack share, built by the first that asks for it."""
        if name not in self.modules:
            self.modules[name] = build()
        return self.modules[name]

    def with_token(self, token: nn.Embedding | None) -> BuildContext:
        """The same with a token table, if there is one."""
        return replace(self, token=token)
