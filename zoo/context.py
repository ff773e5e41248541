"""What a component is told when it is built: the facts that flow down, so that no spec repeats them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from torch import nn

from specs.model import Model
from specs.position import NoPosition, PositionKind


@dataclass(frozen=True)
class BuildContext:
    """Widths and place of a component.

    ``d_model`` is the width of the stream that the component reads and writes, ``layer`` its index in a
    stack of ``layers``; ``cross`` says that the stack attends to an encoder;
    ``heads`` is there where all layers of a stack have equally many.  ``position`` is the stack's.
    ``token`` is the token table, which a head may score against or share, and a second embedding shares.
    """

    d_model: int
    context_length: int | None
    causal: bool
    cross: bool
    layers: int = 1
    layer: int = 0
    heads: int | None = None
    vocab_size: int | None = None
    position: PositionKind = field(default_factory=NoPosition)
    token: nn.Embedding | None = None

    @classmethod
    def of(cls, spec: Model, stack: Literal["encoder", "decoder"]) -> BuildContext:
        """The context of a model's encoder or decoder."""
        cross = stack == "decoder" and spec.architecture == "encoder-decoder"
        part = getattr(spec, stack)
        return cls(
            spec.d_model,
            spec.context_length_of(part),
            causal=stack == "decoder",
            cross=cross,
            vocab_size=spec.vocab_size,
            position=spec.position_of(part),
        )

    def with_token(self, token: nn.Embedding | None) -> BuildContext:
        """The same with a token table, if there is one."""
        return replace(self, token=token)
