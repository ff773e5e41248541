"""Heads that find things which texts name in images: a box for each patch, and how well each text fits it."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from specs.base.base import Fault, OmitDefault, RuleContext, Width
from specs.base.registry import register
from specs.base.words import TIMES, Output, PartContext, Step, product
from specs.kinds.activation import Activation
from specs.kinds.head import HeadKind
from specs.kinds.norm import Norm


@register("head")
class PatchBoxes(HeadKind):
    """A box, and a vector that texts are compared with, for each patch of an image (OWL-ViT: Minderer et al., 2022).

    The head of the images of a dual encoder with the head `detection`. Patches are multiplied by the class token, between two
    norms. Gives `image_embeds` and `class_embeds`, images x patches x width, `logit_shift` and `logit_scale`, images x patches x
    1, and `pred_boxes`, images x patches x 4: centre, width and height as parts of the image.
    """

    kind: Literal["patch_boxes"] = "patch_boxes"
    norm: Norm
    """Norm of all vectors, and of the products with the class token."""
    projection: Width
    """Width of the vectors that are compared, equal to the width of the texts' vectors."""
    activation: Annotated[Activation, OmitDefault()] = "gelu"
    """Activation between the three layers that give a box."""

    @property
    def gives_boxes(self) -> bool:
        return True

    def vector_width(self, d_model: int) -> int:
        return self.projection

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        details = (f"{TIMES} class token, between two norms", "box: three layers", "vector: projection")
        yield Step("Boxes and vectors", "", details)
        yield Output("Patch vectors", product("B", "patches", self.projection))

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules."""
        yield from (fault.under("norm") for fault in self.norm.faults(context))
        if not context.patches or context.packed:
            yield Fault(
                ("kind",),
                "requires an embedding of patches of one size of image",
                self.kind,
                "Add embedding: {kind: patches, image_size: 768, patch_size: 32}.",
            )


@register("head")
class Detection(HeadKind):
    """How well each text fits each patch of an image that has a box (OWL-ViT: Minderer et al., 2022).

    The head of a dual encoder whose images have the head `patch_boxes`. Gives `logits`, images x patches x texts, from products of
    unit vectors, shifted and scaled by numbers of the patch; `pred_boxes`, and the vectors of both, `text_embeds`, `image_embeds`
    and `class_embeds`.
    """

    kind: Literal["detection"] = "detection"

    meets: ClassVar[bool] = True

    @property
    def detects(self) -> bool:
        return True

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield Step("Similarity", None, ("products of unit vectors", "shifted and scaled by each patch"))
        yield Output("Logits and boxes", f"images {TIMES} patches {TIMES} texts, {TIMES} 4")
