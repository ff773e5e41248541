"""Blocks: placement of norms around attention and feed-forward."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from specs.base.base import (
    Component,
    DescribedSpec,
    Dropout,
    Fault,
    OmitDefault,
    PositiveFloat,
    RuleContext,
    Slot,
)
from specs.base.registry import interface, register
from specs.base.roles import field_values
from specs.base.words import PartContext
from specs.kinds.altup import LowRankResidual
from specs.kinds.attention import MultiHeadShape
from specs.kinds.feed_forward import FeedForward
from specs.kinds.mixer import Attention, Mixer, MixerKind
from specs.kinds.norm import Norm
from specs.kinds.per_layer_embedding import PerLayerEmbedding
from specs.kinds.position import PositionKind
from specs.kinds.residual import Add, Residual
from specs.kinds.sharing import Sharing

BRANCH_OPTIONS = ("mixer", "residual", "feed_forward_residual", "layer_scale", "sharing")
"""Fields that a block which arranges its branches in its own way refuses."""


@interface("block")
class BlockParts(Component):
    """Fields common to all kinds of block."""

    norm: Norm
    """Norm of each branch, with separate weights per branch."""
    attention_norm: Norm | None = None
    """Norm of the attention branch (`none` in ModernBERT's first layer). Default: `norm`."""
    mixer_norm: Norm | None = None
    """Norm of the mixer branch, in a block without attention. Default: `norm`."""
    feed_forward_norm: Norm | None = None
    """Norm of the feed-forward branch. Default: `norm`."""
    attention: Attention | None
    """Self-attention, the first branch; `null` for none (Mamba)."""
    mixer: Mixer | None = None
    """Mixer with a state of constant size, such as a short convolution: the first branch, or beside `attention`, whose norm
    it shares and whose output is added. Default: none."""
    cross_attention: Attention | None = None
    """Attention to the encoder output, only in the decoder of an encoder-decoder. Default: `attention` without its window,
    chunk and position."""
    feed_forward: FeedForward | None
    """Feed-forward network, the last branch; `null` for none (Mamba)."""
    residual: Residual = Add()
    """How the output of a branch joins the residual stream. Default: `add`."""
    feed_forward_residual: Residual | None = None
    """How the output of the feed-forward joins the residual stream, where it differs. Default: `residual`."""
    layer_scale: Annotated[PositiveFloat | None, OmitDefault()] = None
    """Initial value of LayerScale, a trained factor per feature on the output of each branch, before the residual sum (Touvron
    et al., 2021; DINOv2: 1.0). Default: none."""
    per_layer_embedding: Annotated[PerLayerEmbedding | None, OmitDefault()] = None
    """Embedding of the tokens for this layer alone, the last branch of a decoder's block (Gemma 3n). Default: none."""
    low_rank_residual: Annotated[LowRankResidual | None, OmitDefault()] = None
    """Learned augmented residual of the first branch, in blocks of kind pre_norm and sandwich (Gemma 3n). Default: none."""
    output_scale: Annotated[PositiveFloat | None, OmitDefault()] = None
    """Value, where no checkpoint has another, of a stored, untrained factor on the output of the block, its residual stream
    included (Gemma 4: 1.0). Default: none."""
    sharing: Annotated[Sharing | None, OmitDefault()] = None
    """Weights of the attention, the feed-forward and their norms that all layers of this block share (Zamba). Default: each
    layer has its own."""
    dropout: Dropout = 0.0
    """Dropout probability on the output of each branch during training."""

    output_is_normalised: ClassVar[bool] = False
    reads_embedding: ClassVar[bool] = False
    passes_second: ClassVar[bool] = False

    def parts(self) -> Iterator[tuple[str, Component]]:
        """The components of the block by the key that holds each."""
        keys = (
            "norm", "attention_norm", "mixer_norm", "feed_forward_norm", "attention", "mixer", "cross_attention",
            "feed_forward", "residual", "feed_forward_residual",
        )  # fmt: skip
        fields = field_values(self)
        for key in keys:
            if (part := fields[key]) is not None:
                yield key, part

    def part_of(self, name: str) -> DescribedSpec | None:
        """The spec of the module of a name, if a field of that name, or a default, states it."""
        part = field_values(self).get(name) or (self.attention if name == "cross_attention" else None)
        return part if isinstance(part, DescribedSpec) else None

    def part_context(self, name: str, context: PartContext) -> PartContext:
        """Surroundings of a module for its details; ``context`` surrounds the branches of the block."""
        return context

    def added_details(self, name: str) -> list[str]:
        """The details that the block adds to the module of a name: how layers share its weights."""
        if self.sharing is None or name not in ("attention", "feed_forward", "first_feed_forward"):
            return []
        return self.sharing.details("attention" if name == "attention" else "feed_forward")

    def norm_of(self, branch: str) -> Component:
        """The norm of a branch: attention, cross_attention or feed_forward."""
        own: Component | None = field_values(self).get(f"{branch}_norm")
        return own or self.norm

    def residual_of(self, branch: str) -> Component:
        """The residual connection of a branch."""
        own = self.feed_forward_residual if branch == "feed_forward" else None
        return own or self.residual

    @property
    def mixers(self) -> tuple[MixerKind, ...]:
        """The attention and the mixer of the first branch, those that the block has."""
        return tuple(mixer for mixer in (self.attention, self.mixer) if mixer is not None)

    @property
    def sliding_window(self) -> int | None:
        """The window of the attention, if it has one."""
        return None if self.attention is None else self.attention.sliding_window

    @property
    def own_position(self) -> PositionKind | None:
        """The position of the attention alone, if it has one."""
        return None if self.attention is None else self.attention.own_position

    def branches(self, *, cross: bool = False) -> tuple[str, ...]:
        """The names of the branches, in order; ``cross``: in a decoder that attends to an encoder."""
        first = "attention" if self.attention is not None else "mixer"
        present = {
            first: bool(self.mixers),
            "cross_attention": cross,
            "feed_forward": self.feed_forward is not None,
        }
        return tuple(name for name, is_present in present.items() if is_present)

    @property
    def reads_second(self) -> bool:
        """Whether it reads the second stream of the embedding."""
        position = self.own_position
        return self.passes_second or (position is not None and position.reads_second)

    def branch_width(self, d_model: int) -> int:
        """The width of the stream that the branches read and add to."""
        return d_model

    def norms_used(self) -> list[Component]:
        """The norms of the branches that every stack has."""
        return [self.norm_of(branch) for branch in self.branches()]

    def why_insensitive(self, width: int) -> str:
        parts = (*self.norms_used(), *self.mixers)
        return next(filter(None, (part.why_insensitive(width) for part in parts)), "")

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if not self.branches():
            yield Fault(
                ("attention",),
                "must not be null in a block without mixer and feed_forward",
                None,
                "Add one of the three.",
            )
        yield from self._norm_faults()
        yield from self._residual_faults(self.branches(cross=context.cross))
        if self.mixer is not None and not context.causal:
            yield Fault(
                ("mixer", "kind"),
                "needs a causal stack, because its state carries only what came before",
                self.mixer.kind,
                "Use attention, or set causal: true on the stack.",
            )
        yield from self._cross_faults(context)
        if self.sharing is not None:
            shared = self.sharing.faults(self.attention, self.feed_forward)
            yield from (fault.under("sharing") for fault in shared)
        for key, part in self.parts():
            yield from (fault.under(key) for fault in part.faults(context))
        if self.low_rank_residual is not None:
            if self.kind not in ("pre_norm", "sandwich"):
                yield Fault(
                    ("low_rank_residual",),
                    "belongs to a block whose first branch has a norm before it",
                    self.kind,
                    "Use kind: pre_norm or sandwich, or remove it.",
                )
            faults = self.low_rank_residual.faults(context)
            yield from (fault.under("low_rank_residual") for fault in faults)
        if self.per_layer_embedding is not None:
            faults = self.per_layer_embedding.faults(context)
            yield from (fault.under("per_layer_embedding") for fault in faults)

    def _cross_faults(self, context: RuleContext) -> Iterable[Fault]:
        """Cross-attention outside decoders with an encoder, and fields that it cannot have."""
        if self.cross_attention is not None and not context.cross:
            yield Fault(
                ("cross_attention",),
                "belongs only in the decoder of an encoder-decoder",
                self.cross_attention.kind,
                "Remove it, or set architecture: encoder-decoder.",
            )
        for key, value in () if self.cross_attention is None else self.cross_attention.fields_of_distance():
            yield Fault(
                ("cross_attention", key),
                "must not be set, because encoder and decoder tokens have no relative distance",
                value,
                f"Remove it, or set {key} on attention.",
            )
        cross = self.cross_attention or self.attention
        if context.cross and cross is not None and cross.takes_keys_values:
            yield Fault(
                ("cross_attention", "reuses_keys_values"),
                "must be false, because keys and values are those of the encoder",
                True,
                "Set a cross_attention without it.",
            )
        if context.cross and not isinstance(cross, MultiHeadShape):
            yield Fault(
                ("cross_attention",)
                if cross is None
                else ("cross_attention" if self.cross_attention else "attention", "kind"),
                "must support attention to the encoder output",
                None if cross is None else cross.kind,
                "Set a cross_attention of kind multi_head, grouped_query or multi_query.",
            )

    def _norm_faults(self) -> Iterable[Fault]:
        """Norms of branches that the block does not have."""
        branches = self.branches()
        fields = field_values(self)
        for branch in ("attention", "mixer", "feed_forward"):
            own = fields[f"{branch}_norm"]
            if own is not None and branch not in branches:
                beside = branch == "mixer" and self.mixer is not None
                rule = (
                    "must not be set, because attention and mixer share a norm"
                    if beside
                    else f"must not be set in a block without {branch}"
                )
                remedy = "Set attention_norm." if beside else f"Remove it, or add {branch}."
                yield Fault((f"{branch}_norm",), rule, own.kind, remedy)

    def _residual_faults(self, branches: tuple[str, ...]) -> Iterable[Fault]:
        """A residual of its own for a feed-forward that is missing, or alone."""
        own = self.feed_forward_residual
        if own is None or ("feed_forward" in branches and len(branches) > 1):
            return
        if "feed_forward" not in branches:
            rule, remedy = (
                "must not be set in a block without feed_forward",
                "Remove it, or add feed_forward.",
            )
        else:
            rule, remedy = "must not be set in a block with feed_forward alone", "Set residual."
        yield Fault(("feed_forward_residual",), rule, own.kind, remedy)


Block = Annotated[BlockParts, Slot("block")]


@register("block")
class PreNorm(BlockParts):
    """Norm before each branch f: x + f(norm(x)) (GPT-2, Llama, T5)."""

    kind: Literal["pre_norm"] = "pre_norm"


@register("block")
class PostNorm(BlockParts):
    """Norm after each residual sum: norm(x + f(x)) (the original Transformer, BERT)."""

    kind: Literal["post_norm"] = "post_norm"
    output_is_normalised: ClassVar[bool] = True
