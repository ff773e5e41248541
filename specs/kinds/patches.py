"""Embeddings of images by patches."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from specs.base.base import (
    Dropout,
    Fault,
    OmitDefault,
    RuleContext,
    Width,
)
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.words import PartContext, PositionStep, Step, product
from specs.kinds.embedding import EmbeddingKind, InputPart, PatchGrid
from specs.kinds.norm import Norm, norm_steps


@register("embedding")
class Patches(EmbeddingKind):
    """An image as a sequence of linearly projected square patches (ViT: Dosovitskiy et al., 2020).

    Pixels beyond the last whole patch are ignored. The number of vectors is the context length.
    """

    kind: Literal["patches"] = "patches"
    image_size: Width
    """Height and width of the image, in pixels."""
    patch_size: Width
    """Height and width of a patch, in pixels. It must not exceed `image_size`."""
    channels: Width = 3
    """Number of color channels."""
    class_token: bool = True
    """Whether a trained vector precedes the patches (the `[CLS]` token of ViT)."""
    distillation_token: Annotated[bool, OmitDefault()] = False
    """Whether a second trained vector follows the class token, which it requires (DeiT: Touvron et al., 2020)."""
    registers: Annotated[int, Field(ge=0, le=2**10), OmitDefault()] = 0
    """Number of register tokens: trained vectors without an embedded position before the patches (Darcet et al., 2023;
    DINOv2 with registers: 4)."""
    placed: Annotated[
        Literal["all", "patches"],
        ValueDescriptions(
            {
                "all": "All vectors but the registers (ViT, DINOv2).",
                "patches": "The patches alone; the position is added before the class token joins them (EoMT).",
            }
        ),
        OmitDefault(),
    ] = "all"
    """Vectors that have an embedded position."""
    bias: bool = True
    """Whether the projection of the patches adds a bias."""
    norm: Annotated[Norm | None, OmitDefault()] = None
    """Norm of the vectors with their positions (CLIP). Default: none."""
    dropout: Dropout = 0.0
    """Dropout probability on the embeddings during training."""

    input_name: ClassVar[str] = "pixel_values"
    input_title: ClassVar[str] = "Image"
    of_patches: ClassVar[bool] = True

    @property
    def side(self) -> int:
        """The number of patches in a row, and of rows."""
        return self.image_size // self.patch_size

    @property
    def fixed_length(self) -> int:
        return self.tokens_before + self.side**2

    @property
    def tokens_before(self) -> int:
        return self.class_token + self.distillation_token + self.registers

    @property
    def has_distillation_token(self) -> bool:
        return self.distillation_token

    @property
    def patch_grid(self) -> PatchGrid:
        return PatchGrid(self.side, self.side, self.patch_size)

    def of_fewer_patches(self, side: int, square: int) -> Self:
        pixels = max(2, -(-side // square)) * square * self.patch_size
        return self.model_copy(update={"image_size": min(self.image_size, pixels)})

    def steps(self, context: PartContext) -> Iterator[Step | PositionStep]:
        width, size = context.width, self.patch_size
        values = product(self.channels, size, size)
        yield Step("Patches through one matrix", "patch", (f"{values} → {width:,}",))
        if self.placed == "patches":
            yield PositionStep()
        if self.class_token:
            yield Step("Class token", "class_token", (product(1, width),), joins="∥")
        if self.distillation_token:
            yield Step("Distillation token", "distillation_token", (product(1, width),), joins="∥")
        if self.placed == "all":
            yield PositionStep()
        if self.registers:
            yield Step("Registers", "register", (product(self.registers, width),), joins="∥")
        yield from norm_steps(self.norm)

    def vector_names(self, count: int, column_seconds: float | None = None) -> list[str]:
        rows, columns, _ = self.patch_grid
        first = ["[CLS]"] * self.class_token + ["[DIST]"] * self.distillation_token
        first += [f"reg{i}" for i in range(self.registers)]
        return first + [f"r{row}c{column}" for row in range(rows) for column in range(columns)]

    def ends(self, vectors: int) -> tuple[InputPart, InputPart]:
        size = self.patch_size
        last = (self.side - 1) * size
        first, final = slice(0, size), slice(last, last + size)
        return (..., first, first), (..., final, final)

    @property
    def neighbours(self) -> tuple[InputPart, InputPart]:
        size = self.patch_size
        return (..., slice(0, size), slice(0, size)), (..., slice(0, size), slice(size, 2 * size))

    def position_count(self, context_length: int | None) -> int:
        before = 0 if self.placed == "patches" else self.tokens_before - self.registers
        return before + self.side**2

    def input_shape(self, context_length: int | None) -> tuple[int, ...]:
        return self.channels, self.image_size, self.image_size

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.patch_size > self.image_size:
            yield Fault(
                ("patch_size",),
                f"must not exceed image_size, which is {self.image_size}",
                self.patch_size,
                f"Use {self.image_size} or less.",
            )
        if self.distillation_token and not self.class_token:
            yield Fault(
                ("distillation_token",),
                "requires a class token, which it follows",
                self.distillation_token,
                "Set class_token: true, or remove it.",
            )
