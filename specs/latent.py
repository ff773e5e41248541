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

    Keys and values are projected down to ``kv_rank``, normalised, and up again; queries to ``query_rank`` likewise, or
    straight where it is null.  Of each head ``head_dim`` dimensions are never rotated; ``rope_dim`` more are, and the
    keys have those in common.  Values are ``value_dim`` wide.  ``bias`` is that of the projections down and of the
    output; ``scale`` multiplies the scores (default: (head_dim + rope_dim) ** -0.5).
    """

    kind: Literal["latent"] = "latent"
    heads: Heads
    query_rank: Width | None = None
    kv_rank: Width
    head_dim: Width
    rope_dim: Width
    value_dim: Width
    norm: Norm = RMSNorm()
    bias: bool = False
    scale: PositiveFloat | None = None
    dropout: Probability = 0.0

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
