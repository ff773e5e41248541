"""Whether a call mixes the tokens of a sequence, and the rules that most operations use.

Operations that keep tokens apart can run on packed tokens, without the padding between them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from torch import fx


class Mixing(Enum):
    """How a call treats the tokens of a sequence."""

    SEPARATE = "separate"
    """Each token of the result depends on that token alone, if the result has all tokens."""
    MASKED = "masked"
    """Tokens mix, and a mask excludes padding."""
    MIXED = "mixed"
    """Tokens mix, padding included."""


class TokenAxes(Protocol):
    """Where the tensors of a graph have their tokens."""

    def axis(self, node: fx.Node) -> int:
        """The token axis of a tensor."""

    def has_tokens(self, value: Any) -> bool:
        """Whether a value is a tensor with a batch or token axis."""


def separate(node: fx.Node, tokens: TokenAxes) -> Mixing:
    """Tokens stay apart."""
    return Mixing.SEPARATE


def mixed(node: fx.Node, tokens: TokenAxes) -> Mixing:
    """Tokens mix."""
    return Mixing.MIXED


def separate_unless_along(
    position: int, default: int | None = None
) -> Callable[[fx.Node, TokenAxes], Mixing]:
    """Tokens mix if the argument ``dim``, at ``position``, is the token axis."""

    def rule(node: fx.Node, tokens: TokenAxes) -> Mixing:
        given = node.args[position] if len(node.args) > position else default
        dim: Any = node.kwargs.get("dim", given)
        rank = node.meta["info"][0].ndim
        return Mixing.MIXED if tokens.axis(node) == dim % rank else Mixing.SEPARATE

    return rule


def separate_unless_second(node: fx.Node, tokens: TokenAxes) -> Mixing:
    """Tokens mix if the second argument, weights as a rule, has tokens too."""
    return Mixing.MIXED if tokens.has_tokens(node.args[1]) else Mixing.SEPARATE


def mixed_unless_masked(position: int, name: str) -> Callable[[fx.Node, TokenAxes], Mixing]:
    """Tokens mix; the argument at ``position``, of this name, excludes padding where it is given."""

    def rule(node: fx.Node, tokens: TokenAxes) -> Mixing:
        mask = node.args[position] if len(node.args) > position else node.kwargs.get(name)
        return Mixing.MIXED if mask is None else Mixing.MASKED

    return rule
