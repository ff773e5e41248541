"""Attention whose queries, keys and values come from narrow latents."""

from collections.abc import Iterable
from typing import Literal

from specs.attention import Heads
from specs.base import Component, Fault, Frame, PositiveFloat, Probability, Width
from specs.norm import Norm, RMSNorm
from specs.registry import register


@register("attention")
class Latent(Component):
    """Multi-head latent attention (DeepSeek-V2, 2024).

    Keys and values are projected down to a narrow latent, normalised, and projected up again; queries may be, too.
    """

    kind: Literal["latent"] = "latent"
    heads: Heads
    """Number of heads of queries, keys and values."""
    query_rank: Width | None = None
    """Width of the latent of the queries. Default: no latent; queries are projected directly (DeepSeek-V2-Lite)."""
    kv_rank: Width
    """Width of the latent that keys and values share."""
    head_dim: Width
    """Unrotated dimensions of each head's queries and keys."""
    rope_dim: Width
    """Rotated dimensions of each head, added to `head_dim`; all heads share those of the keys. It must be even."""
    value_dim: Width
    """Width of each head's values."""
    norm: Norm = RMSNorm()
    """Norm of the latents, between the projections down and up. Default: RMS norm."""
    bias: bool = False
    """Whether the projections down and the output projection add a bias."""
    scale: PositiveFloat | None = None
    """Factor on the attention scores. Default: `(head_dim + rope_dim) ** -0.5`."""
    dropout: Probability = 0.0
    """Dropout probability on the attention weights during training."""

    def head_width(self, d_model: int) -> int:
        """The width of what a position rotates of each head."""
        return self.rope_dim

    def faults(self, frame: Frame) -> Iterable[Fault]:
        yield from (fault.under("norm") for fault in self.norm.faults(frame))
        if self.rope_dim % 2:
            yield Fault(
                ("rope_dim",),
                "must be even: dimensions rotate in pairs",
                self.rope_dim,
                f"{self.rope_dim - 1 or 2} or {self.rope_dim + 1} would work",
            )
