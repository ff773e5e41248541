"""Attention: how many heads, how wide, which keys a query sees, and what happens to the scores."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, model_serializer, model_validator

from specs.base import (
    Component,
    Fault,
    Frame,
    PositiveFloat,
    Probability,
    Slot,
    Spec,
    Unsaid,
    Width,
    custom_error,
)
from specs.descriptions import ValueDescriptions
from specs.norm import LayerNorm, Norm, RMSNorm
from specs.registry import register
from specs.scalars import boolean_remedy

Attention = Annotated[Component, Slot("attention")]

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
    """A norm of queries and one of keys, before they are rotated."""

    norm: Norm
    """Norm of the queries and, with weights of its own, of the keys."""
    over: Annotated[
        Literal["head", "width", "each_head"],
        ValueDescriptions(
            {
                "head": "One norm as wide as a head, shared by all heads (Qwen3, Gemma 3).",
                "width": "One norm over all heads together (OLMo 2).",
                "each_head": "A norm of each head, with weights of its own (StableLM 2).",
            }
        ),
    ] = "head"
    """What each norm spans: a head, all heads together, or each head with weights of its own."""

    def faults(self, frame: Frame) -> Iterable[Fault]:
        """The broken rules of the norm, and between it and ``over``."""
        yield from (fault.under("norm") for fault in self.norm.faults(frame))
        if self.over == "each_head" and not isinstance(self.norm, LayerNorm | RMSNorm):
            yield Fault(
                ("norm", "kind"),
                "must have weights that each head can have of its own",
                self.norm.kind,
                "layer_norm or rms_norm would work; or over: head",
            )


def divisors(number: int) -> str:
    """The divisors of ``number`` as text, for a remedy."""
    found = [candidate for candidate in range(1, min(number, 512) + 1) if number % candidate == 0]
    return ", ".join(map(str, found))


class MultiHeadShape(Component):
    """What every kind of attention states."""

    heads: Heads
    """Number of query heads. It must divide `d_model`, unless `head_dim` is given."""
    head_dim: Width | None = None
    """Width of one head. Default: `d_model / heads`."""
    bias: ProjectionBiases = ProjectionBiases(query=True, key=True, value=True, output=True)
    """Biases of the query, key, value and output projections: one boolean for all four, or a mapping of each."""
    scale: PositiveFloat | None = None
    """Factor on the attention scores. Default: `head_dim ** -0.5`; T5 and GPT-Neo use 1."""
    dropout: Probability = 0.0
    """Dropout probability on the attention weights during training."""
    window: Window | None = None
    """Sliding-window size in tokens. A causal query sees the last `window` tokens, itself included (Mistral); a
    bidirectional one sees half as many on either side (ModernBERT). Default: no limit."""
    softcap: PositiveFloat | None = None
    """Bound c on the scores, which become `c * tanh(score / c)` before the mask (Gemma 2). Default: unbounded."""
    sinks: Annotated[bool, Unsaid()] = False
    """Whether each head has a trained score that joins the softmax but carries no value (GPT-OSS)."""
    qk_norm: QKNorm | None = None
    """Norms of queries and keys, applied before rotation. Default: none."""
    clip: PositiveFloat | None = None
    """Bound c on the projected queries, keys and values, which are clamped to [-c, c] (OLMo). Default: unbounded."""
    position: Annotated[Component, Slot("position")] | None = None
    """Position kind of this attention: `rope`, `alibi`, `relative_bias` or `none` (SmolLM3 has layers with none).
    Default: that of the stack."""

    @property
    def key_value_heads(self) -> int:
        """How many heads the keys and values have."""
        raise NotImplementedError

    def head_width(self, d_model: int) -> int:
        """The width of one head, stated or derived."""
        return self.head_dim or d_model // self.heads

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if self.head_dim is None and frame.d_model % self.heads:
            yield Fault(
                ("heads",),
                f"must divide d_model, which is {frame.d_model}",
                self.heads,
                f"heads that divide it: {divisors(frame.d_model)}; or give head_dim",
            )
            return
        if self.qk_norm is not None:
            yield from (fault.under("qk_norm") for fault in self.qk_norm.faults(frame))
        if self.position is not None:
            yield from (fault.under("position") for fault in self._position_faults(self.position, frame))

    def _position_faults(self, position: Any, frame: Frame) -> Iterable[Fault]:
        if position.embedded:
            yield Fault(
                ("kind",),
                "must act inside attention, where a block has a position of its own",
                position.kind,
                "rope, alibi, relative_bias or none would work; or set the position of the model",
            )
            return
        yield from position.faults(frame)
        yield from position.attention_faults(self, frame)


@register("attention")
class MultiHead(MultiHeadShape):
    """Multi-head attention (Vaswani et al., 2017): every query head has its own keys and values."""

    kind: Literal["multi_head"] = "multi_head"

    @property
    def key_value_heads(self) -> int:
        return self.heads


@register("attention")
class GroupedQuery(MultiHeadShape):
    """Grouped-query attention (Ainslie et al., 2023): groups of query heads share a head of keys and values."""

    kind: Literal["grouped_query"] = "grouped_query"
    kv_heads: Heads
    """Number of key/value heads, each shared by `heads / kv_heads` query heads. It must divide `heads`."""

    @property
    def key_value_heads(self) -> int:
        return self.kv_heads

    def faults(self, frame: Frame) -> Iterable[Fault]:
        yield from super().faults(frame)
        if self.heads % self.kv_heads:
            yield Fault(
                ("kv_heads",),
                f"must divide heads, which is {self.heads}",
                self.kv_heads,
                f"kv_heads that divide it: {divisors(self.heads)}",
            )


@register("attention")
class MultiQuery(MultiHeadShape):
    """Multi-query attention (Shazeer, 2019): one head of keys and values for all query heads."""

    kind: Literal["multi_query"] = "multi_query"

    @property
    def key_value_heads(self) -> int:
        return 1
