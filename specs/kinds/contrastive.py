"""The head of a dual encoder that compares texts and images."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from specs.base.registry import register
from specs.base.words import TIMES, Output, PartContext, Step
from specs.kinds.head import HeadKind


@register("head")
class Contrastive(HeadKind):
    """How well each text fits each image, from the vectors that the stacks of a dual encoder give (CLIP, SigLIP).

    Gives `text_embeds` and `image_embeds`, and their products times a trained factor, whose logarithm is stored:
    `logits_per_image`, images x texts, and `logits_per_text`, its transpose.
    """

    kind: Literal["contrastive"] = "contrastive"
    log_scale: float = 2.6592
    """Logarithm of the factor at random initialization (CLIP: 2.6592, for 1 / 0.07)."""
    meets: ClassVar[bool] = True
    compared_by: ClassVar[Literal["pairs"]] = "pairs"
    bias: float | None = None
    """Value at random initialization of a trained number that is added (SigLIP: -10). Default: no such number."""

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        number = () if self.bias is None else ("+ a trained number",)
        yield Step("Similarity", "", ("products of the vectors", f"{TIMES} a trained factor", *number))
        yield Output("Logits", f"images {TIMES} texts")
