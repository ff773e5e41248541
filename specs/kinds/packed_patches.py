"""Images of any size: the patches of all of them in one sequence."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Dropout, Width
from specs.base.registry import register
from specs.base.words import PartContext, PositionStep, Step, product
from specs.kinds.embedding import EmbeddingKind, InputPart


@register("embedding")
class PackedPatches(EmbeddingKind):
    """Images of any size as one sequence of linearly projected patches (NaViT: Dehghani et al., 2023; Qwen2-VL).

    An input is the pixels of each patch, and the frames, rows and columns of patches of each image. The patches that the
    connector joins follow one another, and a patch attends only to those of its own image.
    """

    kind: Literal["packed_patches"] = "packed_patches"
    patch_size: Width
    """Height and width of a patch, in pixels."""
    frames: Annotated[int, Field(ge=1, le=16)] = 1
    """Number of frames that a patch spans; an image alone is repeated that often (Qwen2-VL: 2)."""
    channels: Width = 3
    """Number of color channels."""
    bias: bool = True
    """Whether the projection of the patches adds a bias."""
    dropout: Dropout = 0.0
    """Dropout probability on the embeddings during training."""

    input_name: ClassVar[str] = "pixel_values"
    input_title: ClassVar[str] = "Patches of images"
    of_patches: ClassVar[bool] = True
    packed: ClassVar[bool] = True

    @property
    def any_length(self) -> bool:
        return True

    @property
    def patch_width(self) -> int:
        """The number of values of a patch, which are ordered by channel, frame, row and column."""
        return self.channels * self.frames * self.patch_size**2

    def drawn_input(self, length: str, context_length: int | None) -> tuple[str | int, ...]:
        return length, self.patch_width

    def steps(self, context: PartContext) -> Iterator[Step | PositionStep]:
        values = product(self.channels, self.frames, self.patch_size, self.patch_size)
        yield Step("Patches through one matrix", "patch", (f"{values} → {context.width:,}",))
        yield PositionStep()

    def ends(self, vectors: int) -> tuple[InputPart, InputPart]:
        return (slice(None), slice(1)), (slice(None), slice(-1, None))

    @property
    def neighbours(self) -> tuple[InputPart, InputPart]:
        return (slice(None), slice(1)), (slice(None), slice(1, 2))

    def input_shape(self, context_length: int | None) -> tuple[int, ...]:
        assert context_length is not None
        return context_length, self.patch_width
