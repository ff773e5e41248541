"""Attention: number and width of heads, visible keys, and score functions."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_serializer, model_validator

from specs.base.base import (
    Dropout,
    Fault,
    Multiplier,
    OmitDefault,
    PositiveFloat,
    RuleContext,
    Spec,
    Width,
    custom_error,
)
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.suggest import boolean_remedy
from specs.base.words import TIMES, PartContext, factor_details, number_text
from specs.kinds.block_summaries import BlockSummaries
from specs.kinds.mixer import AttentionKind
from specs.kinds.norm import LayerNorm, Norm, RMSNorm
from specs.kinds.output_gate import OutputGateOrNone
from specs.kinds.position import Position, PositionKind

Heads = Annotated[int, Field(gt=0, le=2**16)]
Window = Annotated[int, Field(ge=1, le=2**24)]


class ProjectionBiases(Spec):
    """Which of the four projections add a bias; `true` or `false` stands for all four."""

    query: bool
    """Whether the query projection adds a bias."""
    key: bool
    """Whether the key projection adds a bias."""
    value: bool
    """Whether the value projection adds a bias."""
    output: bool
    """Whether the output projection adds a bias."""

    @model_validator(mode="before")
    @classmethod
    def _all_four(cls, value: Any) -> Any:
        if isinstance(value, bool):
            return dict.fromkeys(cls.model_fields, value)
        if not isinstance(value, dict | ProjectionBiases):
            rule = "must be true, false, or a mapping of query, key, value and output"
            raise custom_error(rule, boolean_remedy(value))
        return value

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"type": "boolean"}, handler(schema)]}

    @model_serializer(mode="wrap")
    def _shortest(self, handler: Any) -> Any:
        values: dict[str, bool] = handler(self)
        return self.query if len(set(values.values())) == 1 else values


class QKNorm(Spec):
    """Norms of the queries and the keys, usually before rotation."""

    norm: Norm
    """Norm of the queries and, with separate weights, of the keys."""
    over: Annotated[
        Literal["head", "width", "each_head"],
        ValueDescriptions(
            {
                "head": "One norm of the width of a head, shared by all heads (Qwen3, Gemma 3).",
                "width": "One norm over the concatenated heads (OLMo 2).",
                "each_head": "One norm per head, each with its own weights (StableLM 2).",
            }
        ),
    ] = "head"
    """Span of each norm: a head, all heads together, or each head with its own weights."""
    after_rotation: Annotated[bool, OmitDefault()] = False
    """Whether the norms follow the rotation (Hunyuan)."""

    @property
    def words(self) -> str:
        """The span of the norms, in few words."""
        return {"head": "per head", "width": "over heads", "each_head": "of each head"}[self.over]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules of the norm and its combination with ``over``."""
        yield from (fault.under("norm") for fault in self.norm.faults(context))
        if self.over == "each_head" and not isinstance(self.norm, LayerNorm | RMSNorm):
            yield Fault(
                ("norm", "kind"),
                "must be a norm with weights per head",
                self.norm.kind,
                "Use layer_norm or rms_norm, or set over: head.",
            )
        if self.after_rotation and self.over != "head":
            yield Fault(
                ("over",),
                "must be head after rotation, which takes heads apart",
                self.over,
                "Use over: head, or remove after_rotation.",
            )


class AttentionMultipliers(Spec):
    """Constant factors on the input and the output of an attention. A factor on the keys is part of `scale`."""

    input: Multiplier = 1.0
    """Factor on the input of the query, key and value projections."""
    output: Multiplier = 1.0
    """Factor on the result of the output projection."""


def divisors(number: int) -> str:
    """The divisors of ``number`` as text, for a remedy."""
    candidates = [candidate for candidate in range(1, min(number, 512) + 1) if number % candidate == 0]
    return ", ".join(map(str, candidates))


def head_count_faults(heads: int, width: int) -> Iterable[Fault]:
    """The violated rule of a number of heads that share a width evenly."""
    if width % heads:
        yield Fault(
            ("heads",), f"must divide width, which is {width}", heads, f"Use a divisor: {divisors(width)}."
        )


class MultiHeadShape(AttentionKind):
    """Fields common to all kinds of attention."""

    heads: Annotated[Heads, Role.HEADS]
    """Number of query heads. It must divide `d_model`, unless `head_dim` is given."""
    head_dim: Annotated[Width | None, Role.HEAD_WIDTH] = None
    """Width of one head. Default: `d_model / heads`."""
    value_dim: Annotated[Width | None, OmitDefault(), Role.HEAD_WIDTH] = None
    """Width of one head's values, where it differs from the width of queries and keys (MiMo-V2). Default: `head_dim`."""
    bias: ProjectionBiases = ProjectionBiases(query=True, key=True, value=True, output=True)
    """Biases of the query, key, value and output projections: one boolean for all four, or a mapping of each."""
    scale: PositiveFloat | None = None
    """Factor on the attention scores. Default: `head_dim ** -0.5`, with a `disentangled` position `(n * head_dim) ** -0.5` for
    the n products of its scores; T5 and GPT-Neo use 1."""
    dropout: Dropout = 0.0
    """Dropout probability on the attention weights during training."""
    window: Annotated[Window | None, Role.WINDOW] = None
    """Sliding-window size in tokens. A causal query sees the last `window` tokens including itself (Mistral); a
    bidirectional one sees `window / 2` tokens on either side (ModernBERT). Default: no limit."""
    chunk: Annotated[Annotated[int, Field(ge=1, le=2**24)] | None, OmitDefault(), Role.WINDOW] = None
    """Size of the chunks, in tokens, that divide a sequence from its first token on: a causal query sees the tokens of its own
    chunk up to itself (Llama 4: 8192). Default: no limit."""
    patch_window: Annotated[Annotated[int, Field(ge=1, le=2**16)] | None, OmitDefault()] = None
    """Side of the square windows, in patches, that divide an image of any size from its first patch on; patches attend only to
    patches of their window (Qwen2.5-VL: 8). Default: to the whole image."""
    block_summaries: Annotated[BlockSummaries | None, OmitDefault()] = None
    """Sums of blocks of tokens, whose keys and values all queries see (LongT5). Default: none."""
    softcap: Annotated[PositiveFloat | None, Role.SOFTCAP] = None
    """Bound c on the scores, which become `c * tanh(score / c)` before the mask (Gemma 2). Default: unbounded."""
    sinks: Annotated[bool, OmitDefault()] = False
    """Whether each head has a trained score that joins the softmax but carries no value (GPT-OSS)."""
    output_gate: OutputGateOrNone = None
    """Gate on the output, before the output projection (Qwen3-Next). Default: none."""
    qk_norm: QKNorm | None = None
    """Norms of queries and keys. Default: none."""
    value_norm: Annotated[Norm | None, OmitDefault()] = None
    """Norm of the values, of the width of a head (Gemma 3n). Default: none."""
    values: Annotated[
        Literal["projected", "keys"],
        ValueDescriptions(
            {
                "projected": "A projection of their own.",
                "keys": "The projected keys, before their norm and rotation (Gemma 4).",
            }
        ),
        OmitDefault(),
    ] = "projected"
    """Source of the values."""
    reuses_keys_values: Annotated[bool, OmitDefault()] = False
    """Whether the layer attends to the keys and values of the last layer before it that has its own and the same window and
    position, and caches none (cross-layer attention: Brandon et al., 2024; Gemma 3n)."""
    clip: Annotated[PositiveFloat | None, Role.CLIP] = None
    """Bound c on the projected queries, keys and values, which are clamped to [-c, c] (OLMo). Default: unbounded."""
    position: Position | None = None
    """Position kind of this attention: `rope`, `alibi`, `relative_bias`, `disentangled` or `none` (as in some layers of SmolLM3).
    Attentions with equal ones share its weights; beside a `learned` or `sinusoidal` position of the stack, both act (MPNet).
    Default: that of the stack."""
    multipliers: AttentionMultipliers = AttentionMultipliers()
    """Constant factors on the input and the output (Falcon-H1). Default: 1."""

    projects_heads: ClassVar[bool] = True

    @property
    def own_position(self) -> PositionKind | None:
        return self.position

    @property
    def position_heads(self) -> int:
        return self.heads

    @property
    def sliding_window(self) -> int | None:
        return self.window

    @property
    def visible_limit(self) -> int | None:
        return self.window or self.chunk

    @property
    def summarized_tokens(self) -> int | None:
        return None if self.block_summaries is None else self.block_summaries.size

    @property
    def separate_window(self) -> int | None:
        return None if self.patch_window is None else self.patch_window**2

    @property
    def takes_keys_values(self) -> bool:
        return self.reuses_keys_values

    @property
    def has_own_values(self) -> bool:
        return self.values == "projected" and not self.reuses_keys_values

    @property
    def has_sink(self) -> bool:
        return self.sinks

    @property
    def inner_norm(self) -> QKNorm | None:
        return self.qk_norm

    def score_scale(self, d_model: int, terms: int = 1) -> float:
        return float((terms * self.head_width(d_model)) ** -0.5) if self.scale is None else self.scale

    def fields_of_distance(self) -> Iterator[tuple[str, Any]]:
        values = {
            "window": self.window,
            "chunk": self.chunk,
            "position": self.position and self.position.kind,
        }
        yield from ((name, value) for name, value in values.items() if value is not None)

    def details(self, context: PartContext) -> list[str]:
        width, groups = self.head_width(context.width), self.key_value_heads
        heads = [f"{self.heads:,} head{'s' * (self.heads > 1)} {TIMES} {width:,}"]
        if groups != self.heads:
            heads = [
                f"{self.heads:,} query heads {TIMES} {width:,}",
                f"{groups:,} key-value head{'s' if groups > 1 else ''}",
            ]
        if self.value_dim is not None:
            heads.append(f"values {self.value_dim:,} wide")
        details = [
            *heads,
            *self.sight_details(context),
            *self._limit_details(context),
            *self._score_details(width),
        ]
        if self.reuses_keys_values:
            details.append("keys and values of an earlier layer")
        elif self.values == "keys":
            details.append("keys as values")
        if self.value_norm is not None and not self.reuses_keys_values:
            details.append(f"{self.value_norm.heading} of values")
        if self.sinks:
            details.append("sinks")
        if self.output_gate is not None:
            details.append(self.output_gate.words)
        return details + factor_details(self.multipliers)

    def _limit_details(self, context: PartContext) -> Iterable[str]:
        """The limits of what a query sees."""
        if self.window is not None:
            yield f"window {self.window:,}" if context.causal else f"window ±{self.window // 2:,}"
        if self.block_summaries is not None:
            yield f"sums of blocks of {self.block_summaries.size:,}"
        if self.chunk is not None:
            yield f"chunk {self.chunk:,}"
        if self.patch_window is not None:
            yield f"windows of {self.patch_window:,} {TIMES} {self.patch_window:,} patches"

    def _score_details(self, width: int) -> Iterable[str]:
        """The changes to scores, queries, keys and values."""
        if self.scale is not None and abs(self.scale * width**0.5 - 1) > 1e-6:
            yield "unscaled" if self.scale == 1 else f"scale {number_text(self.scale)}"
        if self.softcap is not None:
            yield f"softcap {number_text(self.softcap)}"
        if self.clip is not None:
            yield f"clip ±{number_text(self.clip)}"

    def why_insensitive(self, width: int) -> str:
        return "" if self.qk_norm is None else self.qk_norm.norm.why_insensitive(self.head_width(width))

    @property
    def key_value_heads(self) -> int:
        """Number of key/value heads."""
        raise NotImplementedError

    def head_width(self, d_model: int) -> int:
        """The width of one head, stated or derived."""
        return self.head_dim or d_model // self.heads

    def value_width(self, d_model: int) -> int:
        """The width of one head's values, by default the width of its keys."""
        return self.value_dim or self.head_width(d_model)

    def takes_keys_of(self, other: AttentionKind | None, d_model: int) -> bool:
        """Whether another attention has keys and values of its own, and sizes, window, chunk and position of this one."""
        return (
            isinstance(other, MultiHeadShape)
            and not other.reuses_keys_values
            and (other.window, other.chunk) == (self.window, self.chunk)
            and other.position == self.position
            and other.key_value_heads == self.key_value_heads
            and other.head_width(d_model) == self.head_width(d_model)
            and other.value_width(d_model) == self.value_width(d_model)
        )

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.head_dim is None and context.d_model % self.heads:
            yield Fault(
                ("heads",),
                f"must divide d_model, which is {context.d_model}",
                self.heads,
                f"Use a divisor: {divisors(context.d_model)}; or set head_dim.",
            )
            return
        if self.chunk is not None and not context.causal:
            yield Fault(
                ("chunk",),
                "requires a causal stack",
                self.chunk,
                "Remove it, or use window.",
            )
        if self.chunk is not None and self.window is not None:
            yield Fault(
                ("chunk",),
                "must not be set beside window, which limits what a query sees too",
                self.chunk,
                "Remove one of them.",
            )
        if self.patch_window is not None and not context.packed:
            yield Fault(
                ("patch_window",),
                "requires an embedding of packed_patches, whose rows and columns it divides",
                self.patch_window,
                "Remove it.",
            )
        if self.block_summaries is not None:
            attention_context = replace(context, position=self.position or context.position)
            yield from (
                fault.under("block_summaries") for fault in self.block_summaries.faults(attention_context)
            )
            if self.reuses_keys_values:
                yield Fault(
                    ("block_summaries",),
                    "require keys and values of the layer's own",
                    self.block_summaries.size,
                    "Remove them, or remove reuses_keys_values.",
                )
        if self.qk_norm is not None:
            yield from (fault.under("qk_norm") for fault in self.qk_norm.faults(context))
        if self.value_norm is not None:
            yield from (fault.under("value_norm") for fault in self.value_norm.faults(context))
        if self.values == "keys":
            yield from self._shared_value_faults(context)
        if self.position is not None:
            yield from (fault.under("position") for fault in self._position_faults(self.position, context))

    def _shared_value_faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules of values that are the keys."""
        if self.value_width(context.d_model) != self.head_width(context.d_model):
            yield Fault(
                ("value_dim",),
                "must be that of the keys, which are the values",
                self.value_dim,
                "Remove it, or remove values.",
            )
        if self.bias.value != self.bias.key:
            yield Fault(
                ("bias", "value"),
                "must equal that of the keys, which are the values",
                self.bias.value,
                f"Set {str(self.bias.key).lower()}.",
            )

    def _position_faults(self, position: PositionKind, context: RuleContext) -> Iterable[Fault]:
        if position.embedded:
            yield Fault(
                ("kind",),
                "must be a position that acts inside attention",
                position.kind,
                "Use rope, alibi, relative_bias, disentangled or none, or set the position of the model.",
            )
            return
        yield from position.faults(context)
        yield from position.attention_faults(self, context)


@register("attention")
class MultiHead(MultiHeadShape):
    """Multi-head attention (Vaswani et al., 2017): each query head has its own keys and values."""

    kind: Literal["multi_head"] = "multi_head"
    title: ClassVar[str] = "Multi-head attention"

    @property
    def key_value_heads(self) -> int:
        return self.heads


@register("attention")
class GroupedQuery(MultiHeadShape):
    """Grouped-query attention (Ainslie et al., 2023): groups of query heads share a key/value head."""

    kind: Literal["grouped_query"] = "grouped_query"
    title: ClassVar[str] = "Grouped-query attention"
    kv_heads: Annotated[Heads, Role.KEY_VALUE_HEADS]
    """Number of key/value heads, each shared by `heads / kv_heads` query heads. It must divide `heads`."""

    @property
    def key_value_heads(self) -> int:
        return self.kv_heads

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        if self.heads % self.kv_heads:
            yield Fault(
                ("kv_heads",),
                f"must divide heads, which is {self.heads}",
                self.kv_heads,
                f"Use a divisor: {divisors(self.heads)}.",
            )


@register("attention")
class MultiQuery(MultiHeadShape):
    """Multi-query attention (Shazeer, 2019): one key/value head for all query heads."""

    kind: Literal["multi_query"] = "multi_query"
    title: ClassVar[str] = "Multi-query attention"

    @property
    def key_value_heads(self) -> int:
        return 1
