"""Embeddings of sound by spectrograms."""

import math
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import (
    Dropout,
    Fault,
    RuleContext,
    Width,
)
from specs.base.registry import register
from specs.base.words import PartContext, PositionStep, Step
from specs.kinds.activation import ACTIVATION_TITLES, Activation
from specs.kinds.embedding import EmbeddingKind, InputPart, kernel_faults


@register("embedding")
class Spectrogram(EmbeddingKind):
    """Audio as a log-mel spectrogram, through two convolutions over time (Whisper: Radford et al., 2022)."""

    kind: Literal["spectrogram"] = "spectrogram"
    mel_bins: Width
    """Number of mel frequency bins: the rows of an input (Whisper: 80, large-v3: 128)."""
    kernel: Annotated[int, Field(gt=0, le=2**10)] = 3
    """Width of both convolutions, in frames. It must be odd."""
    stride: Annotated[int, Field(gt=0, le=2**10)] = 2
    """Stride of the second convolution, in frames: an input has `stride * context_length` of them."""
    activation: Activation = "gelu"
    """Activation after each convolution."""
    dropout: Dropout = 0.0
    """Dropout probability on the embeddings during training."""

    input_name: ClassVar[str] = "input_features"
    input_title: ClassVar[str] = "Log-mel spectrogram"

    def steps(self, context: PartContext) -> Iterator[Step | PositionStep]:
        bins, width, kernel = self.mel_bins, context.width, f"kernel {self.kernel}"
        activation = ACTIVATION_TITLES[self.activation]
        yield Step("Convolution", "first", (f"{bins:,} → {width:,}", kernel, activation))
        stride = f"stride {self.stride}"
        yield Step("Convolution", "second", (f"{width:,} → {width:,}", kernel, stride, activation))
        yield PositionStep()

    @property
    def sees_order(self) -> bool:
        return True

    def ends(self, vectors: int) -> tuple[InputPart, InputPart]:
        # The first convolution moves by 1 and the second by the stride, each reaching kernel // 2 to either side.
        columns, reach = self.stride * vectors, 2 * (self.kernel // 2)
        last = min(self.stride * (vectors - 1) + reach, columns - 1)
        return (..., slice(0, 1)), (..., slice(last, last + 1))

    def vector_names(self, count: int, column_seconds: float | None = None) -> list[str]:
        return start_times(count, self.stride, column_seconds)

    def input_shape(self, context_length: int | None) -> tuple[int, ...]:
        assert context_length is not None
        return self.mel_bins, self.stride * context_length

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from kernel_faults(self.kernel)
        if context.context_length is None:
            yield Fault(
                ("kind",),
                f"requires a context_length, because an input has {self.stride} columns per vector",
                self.kind,
                "Add context_length: 1500 to the model.",
            )


def start_times(count: int, step: int, column_seconds: float | None) -> list[str]:
    """The times at which vectors begin, ``step`` columns apart, with the decimals that tell them apart; or numbers."""
    if column_seconds is None:
        return list(map(str, range(count)))
    seconds = step * column_seconds
    decimals = max(1, math.ceil(-math.log10(seconds)))
    return [f"{i * seconds:.{decimals}f}s" for i in range(count)]
