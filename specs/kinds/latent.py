"""Latent attention: queries, keys and values projected from narrow latents."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from specs.base.base import Dropout, Fault, PositiveFloat, RuleContext, Width
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import TIMES, PartContext
from specs.kinds.attention import Heads
from specs.kinds.mixer import AttentionKind
from specs.kinds.norm import Norm, RMSNorm
from specs.kinds.output_gate import OutputGateOrNone


@register("attention")
class Latent(AttentionKind):
    """Multi-head latent attention (DeepSeek-V2, 2024).

    Keys and values are projected down to a narrow latent, normalised, and projected up again; queries may be, too.
    """

    kind: Literal["latent"] = "latent"
    title: ClassVar[str] = "Latent attention"
    heads: Annotated[Heads, Role.HEADS]
    """Number of query, key and value heads."""
    query_rank: Annotated[Width | None, Role.WIDTH] = None
    """Width of the query latent. Default: none; queries are projected directly (DeepSeek-V2-Lite)."""
    kv_rank: Annotated[Width, Role.WIDTH]
    """Width of the latent shared by keys and values."""
    head_dim: Annotated[Width, Role.HEAD_WIDTH]
    """Unrotated dimensions of each head's queries and keys."""
    rope_dim: Annotated[Width, Role.HEAD_WIDTH]
    """Rotated dimensions of each head, in addition to `head_dim`; the keys' rotated dimensions are shared by all heads. It must be
    even."""
    value_dim: Annotated[Width, Role.HEAD_WIDTH]
    """Width of each head's values."""
    norm: Norm = RMSNorm()
    """Norm of the latents, between the projections down and up. Default: RMS norm."""
    bias: bool = False
    """Whether the projections down and the output projection add a bias."""
    scale: PositiveFloat | None = None
    """Factor on the attention scores. Default: `(head_dim + rope_dim) ** -0.5`."""
    output_gate: OutputGateOrNone = None
    """Gate on the output, before the output projection (Ling 3). Default: none."""
    dropout: Dropout = 0.0
    """Dropout probability on the attention weights during training."""

    def details(self, context: PartContext) -> list[str]:
        queries = [] if self.query_rank is None else [f"queries of rank {self.query_rank:,}"]
        return [
            f"{self.heads:,} heads {TIMES} ({self.head_dim} + {self.rope_dim})",
            f"values {self.value_dim} wide",
            *queries,
            f"keys and values of rank {self.kv_rank:,}",
            *self.sight_details(context),
            *([] if self.output_gate is None else [self.output_gate.words]),
        ]

    @property
    def position_heads(self) -> int:
        return self.heads

    def score_scale(self, d_model: int, terms: int = 1) -> float:
        return float((self.head_dim + self.rope_dim) ** -0.5) if self.scale is None else self.scale

    def head_width(self, d_model: int) -> int:
        """The number of rotated dimensions of each head."""
        return self.rope_dim

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from (fault.under("norm") for fault in self.norm.faults(context))
        if self.rope_dim % 2:
            yield Fault(
                ("rope_dim",),
                "must be even: dimensions rotate in pairs",
                self.rope_dim,
                f"Use {self.rope_dim - 1 or 2} or {self.rope_dim + 1}.",
            )
