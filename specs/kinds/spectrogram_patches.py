"""Embeddings of spectrograms by patches."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal, Self

from specs.base.base import Dropout, Fault, RuleContext, Width
from specs.base.registry import register
from specs.base.words import PartContext, PositionStep, Step, product
from specs.kinds.embedding import EmbeddingKind, InputPart


@register("embedding")
class SpectrogramPatches(EmbeddingKind):
    """A log-mel spectrogram of fixed length as linearly projected square patches, which may overlap, after a class token and a
    distillation token (AST: Gong et al., 2021).

    Patches of the lowest frequencies come first, in the order of time; frames and bins beyond the last whole patch are ignored.
    The number of vectors is the context length.
    """

    kind: Literal["spectrogram_patches"] = "spectrogram_patches"
    frames: Width
    """Number of frames of an input (AST: 1024, of 10 ms)."""
    mel_bins: Width
    """Number of mel frequency bins of a frame (AST: 128)."""
    patch_size: Width = 16
    """Number of frames of a patch, and of its bins."""
    frame_stride: Width = 10
    """Number of frames from one patch to the next."""
    bin_stride: Width = 10
    """Number of bins from one row of patches to the next."""
    dropout: Dropout = 0.0
    """Dropout probability on the embeddings during training."""

    input_name: ClassVar[str] = "input_values"
    input_title: ClassVar[str] = "Log-mel spectrogram"

    @property
    def grid(self) -> tuple[int, int]:
        """The number of rows of patches, and of patches in a row."""
        rows, columns = (
            (size - self.patch_size) // stride + 1
            for size, stride in ((self.mel_bins, self.bin_stride), (self.frames, self.frame_stride))
        )
        return rows, columns

    def of_fewer_patches(self, side: int, square: int) -> Self:
        sizes = {
            "frames": min(self.frames, self.patch_size + (side - 1) * self.frame_stride),
            "mel_bins": min(self.mel_bins, self.patch_size + (side - 1) * self.bin_stride),
        }
        return self.model_copy(update=sizes)

    @property
    def fixed_length(self) -> int:
        rows, columns = self.grid
        return self.tokens_before + rows * columns

    @property
    def tokens_before(self) -> int:
        return 2

    @property
    def has_distillation_token(self) -> bool:
        return True

    def steps(self, context: PartContext) -> Iterator[Step | PositionStep]:
        width, size = context.width, self.patch_size
        stride = f"strides {product(self.bin_stride, self.frame_stride)}"
        yield Step("Patches through one matrix", "patch", (f"{product(size, size)} → {width:,}", stride))
        yield Step("Class token", "class_token", (product(1, width),), joins="∥")
        yield Step("Distillation token", "distillation_token", (product(1, width),), joins="∥")
        yield PositionStep()

    def vector_names(self, count: int, column_seconds: float | None = None) -> list[str]:
        rows, columns = self.grid
        return ["[CLS]", "[DIST]", *(f"r{row}c{column}" for row in range(rows) for column in range(columns))]

    def ends(self, vectors: int) -> tuple[InputPart, InputPart]:
        rows, columns = self.grid
        end = (columns - 1) * self.frame_stride + self.patch_size
        top = (rows - 1) * self.bin_stride + self.patch_size
        return (..., slice(0, 1), slice(0, 1)), (..., slice(end - 1, end), slice(top - 1, top))

    def position_count(self, context_length: int | None) -> int:
        return self.fixed_length

    def input_shape(self, context_length: int | None) -> tuple[int, ...]:
        return self.frames, self.mel_bins

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        for key, size in (("frames", self.frames), ("mel_bins", self.mel_bins)):
            if self.patch_size > size:
                yield Fault(
                    ("patch_size",),
                    f"must not exceed {key}, which is {size}",
                    self.patch_size,
                    f"Use {size} or less.",
                )
