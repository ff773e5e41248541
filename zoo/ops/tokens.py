"""Whether a call mixes the tokens of a sequence, and the common rules of operations.

Operations that do not mix tokens can run on packed tokens, without the padding between them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from torch import fx


class Mixing(Enum):
    """The effect of a call on the tokens of a sequence."""

    SEPARATE = "separate"
    """Each token of a result with all tokens depends only on the same token of the inputs."""
    MASKED = "masked"
    """Tokens mix, and a mask excludes padding."""
    MIXED = "mixed"
    """Tokens mix, padding included."""


class TokenAxes(Protocol):
    """The token axes of the tensors of a graph."""

    def axis(self, node: fx.Node) -> int | None:
        """The token axis of a tensor; None if it is not known."""

    def has_tokens(self, value: Any) -> bool:
        """Whether a value is a tensor with a batch or token axis."""


def separate(node: fx.Node, tokens: TokenAxes) -> Mixing:
    """Tokens do not mix."""
    return Mixing.SEPARATE


def mixed(node: fx.Node, tokens: TokenAxes) -> Mixing:
    """Tokens mix."""
    return Mixing.MIXED


def separate_unless_along(
    position: int, default: int | None = None
) -> Callable[[fx.Node, TokenAxes], Mixing]:
    """Tokens mix if the argument ``dim``, at ``position``, is the token axis."""

    def rule(node: fx.Node, tokens: TokenAxes) -> Mixing:
        along = node.args[position] if len(node.args) > position else default
        dim: Any = node.kwargs.get("dim", along)
        rank = node.meta["info"][0].ndim
        return Mixing.MIXED if tokens.axis(node) in (None, dim % rank) else Mixing.SEPARATE

    return rule


def separate_unless_second(node: fx.Node, tokens: TokenAxes) -> Mixing:
    """Tokens mix if the second argument, usually weights, also has tokens."""
    return Mixing.MIXED if tokens.has_tokens(node.args[1]) else Mixing.SEPARATE


def mixed_unless_masked(position: int, name: str) -> Callable[[fx.Node, TokenAxes], Mixing]:
    """Tokens mix; the argument ``name``, at ``position``, excludes padding if it is not None."""

    def rule(node: fx.Node, tokens: TokenAxes) -> Mixing:
        mask = node.args[position] if len(node.args) > position else node.kwargs.get(name)
        return Mixing.MIXED if mask is None else Mixing.MASKED

    return rule
