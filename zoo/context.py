"""The context in which a component is built: facts that flow down, so that no spec repeats them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from torch import nn

from specs.kinds.embedding import PatchGrid
from specs.kinds.position import NoPosition, PositionKind
from specs.model.model import Model
from specs.model.stack import StackName


@dataclass(frozen=True)
class BuildContext:
    """Facts for every component of a stack.

    d_model: the width of the residual stream that the component reads and writes.
    cross: whether the stack attends to an encoder.  encoder_width: the width of the encoder's output, or of the vectors that a
    connector reads.
    input_width: the width of the input of an attention or a feed-forward, if not d_model.
    fixed_length: whether every input is as long as context_length, as images and spectrograms are.
    patch_grid: the patch grid of an image stack.
    second_width: the width of a second stream that the embedding gives, if it does.
    """

    d_model: int
    context_length: int | None
    causal: bool
    cross: bool
    encoder_width: int | None = None
    input_width: int | None = None
    fixed_length: bool = False
    patch_grid: PatchGrid | None = None
    second_width: int | None = None

    @property
    def reads(self) -> int:
        """The width of the input of an attention or a feed-forward."""
        return self.input_width or self.d_model

    @classmethod
    def within(cls, context: BuildContext, **more: Any) -> Self:
        """The context of a part, with the facts of the whole and ``more``."""
        known = {fact.name for fact in fields(cls)}
        shared = {name: value for name, value in vars(context).items() if name in known}
        return cls(**shared | more)


@dataclass(frozen=True)
class StackContext(BuildContext):
    """Further facts for embeddings, stacks and heads.

    queries: the number of trained vectors that join others in the stack.
    position_kind: the position of the stack.
    token: the token table, which a head may score against or share, and a second embedding shares.
    """

    vocab_size: int | None = None
    position_kind: PositionKind = field(default_factory=NoPosition)
    token: nn.Embedding | None = None
    queries: int = 0

    @classmethod
    def of(cls, spec: Model, stack: StackName) -> StackContext:
        """The context of a model's stack."""
        cross = stack == "decoder" and spec.architecture == "encoder-decoder"
        part = spec.stack(stack)
        return cls(
            spec.width_of(part),
            spec.context_length_of(part),
            causal=spec.is_causal(stack),
            cross=cross,
            encoder_width=spec.width_of(spec.encoder) if cross and spec.encoder is not None else None,
            fixed_length=not spec.embedding_of(part).any_length,
            patch_grid=spec.embedding_of(part).patch_grid,
            second_width=spec.embedding_of(part).second_width,
            vocab_size=spec.vocab_size,
            position_kind=spec.position_of(part),
            queries=0 if part.queries is None else part.queries.count,
        )

    def with_token(self, token: nn.Embedding | None) -> StackContext:
        """The same with a token table, if there is one."""
        return replace(self, token=token)


@dataclass(frozen=True)
class LayerContext(BuildContext):
    """Further facts for the parts of a layer: its index in a stack of ``layers``, among others.

    position_kind: the position of the stack.  modules: those that several layers of the stack share, by name.
    """

    vocab_size: int | None = None
    position_kind: PositionKind = field(default_factory=NoPosition)
    layer: int = 0
    layers: int = 1
    modules: dict[str, nn.Module] = field(default_factory=dict)

    def shared(self, name: str, build: Callable[[], nn.Module]) -> nn.Module:
        """The module of this name that the layers of a stack share, built by the first that asks for it."""
        if name not in self.modules:
            self.modules[name] = build()
        return self.modules[name]


@dataclass(frozen=True)
class PositionContext(BuildContext):
    """Further facts for a position that acts inside attention.

    heads: the head count of the attentions, None if they differ.  head_width: the width of a head of the one attention with this
    position, None if it is the stack's.
    summarized: whether an attention also reads block summaries.  queries: the number of trained vectors that join others in the stack.
    """

    heads: int | None = None
    head_width: int | None = None
    summarized: bool = False
    queries: int = 0
