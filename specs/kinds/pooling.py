"""Pooling: from the vectors of a sequence to one."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from specs.base.base import Component, Fault, RuleContext, Spec
from specs.base.descriptions import ValueDescriptions
from specs.kinds.attention import MultiHeadShape
from specs.kinds.feed_forward import FeedForward
from specs.kinds.mixer import Attention
from specs.kinds.norm import Norm


class AtToken(Spec):
    """The first token with a given id, or the first of all if the sequence has none (CLIP: the end token)."""

    token: Annotated[int, Field(ge=0)] | Literal["highest"]
    """Token id to look for, below `vocab_size`; `highest` for the highest id in the sequence (the first CLIP models, OWL-ViT)."""

    @property
    def words(self) -> str:
        """The reduction in few words."""
        return "at the highest token id" if self.token == "highest" else f"at token {self.token}"


TokenPooling = Literal["first", "last", "mean", "max", "weighted_mean", "mean_sqrt_length"]
"""The reductions of real tokens to one vector."""

PoolingName = Annotated[
    Literal[TokenPooling, "patches", "first_two"],
    ValueDescriptions(
        {
            "first": "The first token (BERT's `[CLS]`); not for decoders, whose first token sees no other.",
            "last": "The last token that is not padding (decoders).",
            "mean": "The mean over all tokens.",
            "max": "The largest value of each feature over all tokens.",
            "weighted_mean": "The mean over all tokens, the n-th weighted by n (SGPT).",
            "mean_sqrt_length": "The sum over all tokens, divided by the square root of their number.",
            "first_two": "The mean of the class token and the distillation token (AST).",
            "patches": "The mean over the patches of an image, without the vectors before them (BEiT).",
        }
    ),
]


def trained_query_faults(
    attention: Component, norm: Component, feed_forward: Component, context: RuleContext
) -> Iterable[Fault]:
    """The violated rules of the parts of a block of trained queries, which have no place among the vectors that they attend to."""
    yield from (fault.under("attention") for fault in _attention_faults(attention, context))
    for name, part in (("norm", norm), ("feed_forward", feed_forward)):
        yield from (fault.under(name) for fault in part.faults(context))


def _attention_faults(attention: Component, context: RuleContext) -> Iterable[Fault]:
    if not isinstance(attention, MultiHeadShape):
        yield Fault(("kind",), "must have heads of equal width", attention.kind, "Use multi_head.")
        return
    if attention.reuses_keys_values:
        yield Fault(
            ("reuses_keys_values",),
            "must be false for trained queries, which no layer with keys and values precedes",
            True,
            "Remove it.",
        )
    if attention.window is not None:
        rule = "must be null for trained queries, which attend to all vectors"
        yield Fault(("window",), rule, attention.window, "Remove it.")
    if attention.position is not None:
        rule = "must be null for trained queries, which have no place in a sequence"
        yield Fault(("position",), rule, attention.position.kind, "Remove it.")
    yield from attention.faults(context)


class AttentionPooling(Spec):
    """A trained query attends to all tokens; a feed-forward with a norm before it adds to the result (SigLIP)."""

    attention: Attention
    """Attention of the query: a kind with heads, without window or position."""
    norm: Norm
    """Norm before the feed-forward."""
    feed_forward: FeedForward
    """Feed-forward whose output is added."""

    @property
    def words(self) -> str:
        """The reduction in few words."""
        return "by attention"

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules of its parts."""
        return trained_query_faults(self.attention, self.norm, self.feed_forward, context)


def _pooling_tag(pooling: object) -> str:
    if isinstance(pooling, AttentionPooling) or (isinstance(pooling, dict) and "token" not in pooling):
        return "attention"
    return "mapping" if isinstance(pooling, dict | AtToken) else "name"


Pooling = Annotated[
    Annotated[PoolingName, Tag("name")]
    | Annotated[AtToken, Tag("mapping")]
    | Annotated[AttentionPooling, Tag("attention")],
    Discriminator(_pooling_tag),
]
"""The vector for a sequence: the vector of the first, last or a given token, or a combination of all tokens."""


def pooling_words(pooling: Pooling) -> str:
    """A reduction in few words."""
    if not isinstance(pooling, str):
        return pooling.words
    if pooling == "first_two":
        return "mean of the first two"
    return f"{pooling} token" if pooling in ("first", "last") else f"{pooling.replace('_', ' ')} of tokens"
