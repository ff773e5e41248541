"""Blocks with their norms elsewhere than before or after each branch."""

from collections.abc import Iterable
from typing import Annotated, Literal

from specs.base.base import (
    Fault,
    RuleContext,
    default_faults,
)
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.kinds.block import BlockParts


@register("block")
class Parallel(BlockParts):
    """Parallel branches: x + attention(norm(x)) + feed_forward(norm(x)) (GPT-J, PaLM)."""

    kind: Literal["parallel"] = "parallel"
    norms: Annotated[
        Literal["shared", "separate"],
        ValueDescriptions(
            {
                "shared": "Both branches read the output of one norm (GPT-J).",
                "separate": "Each branch has its own norm (GPT-NeoX).",
            }
        ),
    ] = "shared"
    """Whether the branches share one norm or have one each."""

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        if self.feed_forward_residual is not None:
            yield Fault(
                ("feed_forward_residual",),
                "must not be set in a parallel block, because its branches join the residual stream together",
                self.feed_forward_residual.kind,
                "Set residual.",
            )
        if self.norms == "shared":
            norms = ("attention_norm", "mixer_norm", "feed_forward_norm")
            rule = "must not be set if the branches share one norm"
            yield from default_faults(self, norms, rule, "Set norms: separate, or remove it.")


@register("block")
class ReorderedNorm(BlockParts):
    """Norm of each branch output before the residual sum: x + norm(f(x)) (Swin V2, OLMo 2)."""

    kind: Literal["reordered_norm"] = "reordered_norm"


@register("block")
class Sandwich(BlockParts):
    """Norms before and after each branch f: x + norm(f(norm(x))) (CogView, Gemma 2)."""

    kind: Literal["sandwich"] = "sandwich"


@register("block")
class NormedResidual(BlockParts):
    """Norm before each branch f and its residual: norm(x) + f(norm(x)) (MiniMax-01; BLOOM allows it)."""

    kind: Literal["normed_residual"] = "normed_residual"
