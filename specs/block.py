"""Blocks: where the norms sit around attention and feed-forward."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

import specs.mixture  # noqa: F401 - registers its kind
from specs.attention import Attention, MultiHeadShape
from specs.base import Component, Fault, Frame, Probability, Slot
from specs.descriptions import ValueDescriptions
from specs.feed_forward import FeedForward
from specs.norm import Norm
from specs.registry import register
from specs.residual import Add, Residual

Block = Annotated[Component, Slot("block")]


class BlockParts(Component):
    """What every kind of block states."""

    norm: Norm
    """Norm of each branch, with weights of its own in each."""
    attention_norm: Norm | None = None
    """Norm of the attention branch (ModernBERT's first layer has none). Default: `norm`."""
    feed_forward_norm: Norm | None = None
    """Norm of the feed-forward branch. Default: `norm`."""
    attention: Attention
    """Self-attention, the first branch."""
    cross_attention: Attention | None = None
    """Attention to the encoder's output, in the decoder of an encoder-decoder only. Default: as `attention`, without its
    window and position."""
    feed_forward: FeedForward
    """Feed-forward network, the last branch."""
    residual: Residual = Add()
    """How the output of a branch joins the residual stream. Default: `add`."""
    dropout: Probability = 0.0
    """Dropout probability on the output of each branch during training."""

    output_is_normalised: ClassVar[bool] = False

    def parts(self) -> Iterator[tuple[str, Component]]:
        """The components of the block by the key that holds each."""
        keys = (
            "norm",
            "attention_norm",
            "feed_forward_norm",
            "attention",
            "cross_attention",
            "feed_forward",
            "residual",
        )
        for key in keys:
            part = getattr(self, key)
            if part is not None:
                yield key, part

    def norm_of(self, branch: str) -> Component:
        """The norm of a branch: attention, cross_attention or feed_forward."""
        own: Component | None = getattr(self, f"{branch}_norm", None)
        return own or self.norm

    def norms_used(self) -> list[Component]:
        """The norms of self-attention and feed-forward."""
        return [self.norm_of("attention"), self.norm_of("feed_forward")]

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if self.cross_attention is not None and not frame.cross:
            yield Fault(
                ("cross_attention",),
                "belongs only in the decoder of an encoder-decoder",
                self.cross_attention.kind,
                "remove it, or set architecture: encoder-decoder",
            )
        for key in ("window", "position"):
            value = getattr(self.cross_attention, key, None)
            if value is not None:
                yield Fault(
                    ("cross_attention", key),
                    "must not be given: the tokens of an encoder have no distance from those of a decoder",
                    value if key == "window" else value.kind,
                    f"remove it, or give {key} to attention",
                )
        cross = self.cross_attention or self.attention
        if frame.cross and not isinstance(cross, MultiHeadShape):
            yield Fault(
                ("cross_attention" if self.cross_attention else "attention", "kind"),
                "attends to the decoder's own tokens alone",
                cross.kind,
                "give a cross_attention of kind multi_head, grouped_query or multi_query",
            )
        for key, part in self.parts():
            yield from (fault.under(key) for fault in part.faults(frame))


@register("block")
class PreNorm(BlockParts):
    """Norm before each branch f: x + f(norm(x)) (GPT-2, Llama, T5)."""

    kind: Literal["pre_norm"] = "pre_norm"


@register("block")
class PostNorm(BlockParts):
    """Norm after each residual sum: norm(x + f(x)) (the original Transformer, BERT)."""

    kind: Literal["post_norm"] = "post_norm"
    output_is_normalised: ClassVar[bool] = True


@register("block")
class Parallel(BlockParts):
    """Branches side by side: x + attention(norm(x)) + feed_forward(norm(x)) (GPT-J, PaLM)."""

    kind: Literal["parallel"] = "parallel"
    norms: Annotated[
        Literal["shared", "separate"],
        ValueDescriptions(
            {
                "shared": "Both branches read the output of one norm (GPT-J).",
                "separate": "Each branch has a norm of its own (GPT-NeoX).",
            }
        ),
    ] = "shared"
    """Whether the branches share one norm or have a norm each."""

    def faults(self, frame: Frame) -> Iterable[Fault]:
        yield from super().faults(frame)
        for key in ("attention_norm", "feed_forward_norm"):
            own = getattr(self, key)
            if self.norms == "shared" and own is not None:
                yield Fault(
                    (key,),
                    "must not be given where the branches share one norm",
                    own.kind,
                    "set norms: separate, or remove it",
                )


@register("block")
class BranchNorm(BlockParts):
    """Norm of what a branch f adds: x + norm(f(x)) (Swin V2, OLMo 2)."""

    kind: Literal["branch_norm"] = "branch_norm"


@register("block")
class Sandwich(BlockParts):
    """Norms before and after each branch f: x + norm(f(norm(x))) (CogView, Gemma 2)."""

    kind: Literal["sandwich"] = "sandwich"
