"""Embeddings of waveforms: samples of audio to one vector per frame."""

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Dropout, Fault, RuleContext, Spec, Width
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import WIDTHS, PartContext, PositionStep, Step, plus
from specs.kinds.activation import ACTIVATION_TITLES, Activation
from specs.kinds.embedding import EmbeddingKind, InputPart
from specs.kinds.norm import Norm, norm_steps
from specs.kinds.spectrogram import start_times


class StemConvolution(Spec):
    """A convolution over time, without padding."""

    channels: Annotated[Width, Role.WIDTH]
    """Number of output channels."""
    kernel: Annotated[int, Field(gt=0, le=2**10)]
    """Width of the kernel."""
    stride: Annotated[int, Field(gt=0, le=2**10)]
    """Step of the kernel; it must not exceed `kernel`, so that no sample is skipped."""

    def drawn(self, module: str, channels: int, *details: str) -> Step:
        """The step of the convolution, which reads a number of channels."""
        sizes = (f"{channels:,} → {self.channels:,}", f"kernel {self.kernel}", f"stride {self.stride}")
        return Step("Convolution", module, (*sizes, *details))


StemConvolutions = Annotated[tuple[StemConvolution, ...], Field(strict=False, min_length=1, max_length=2**6)]


class SampledKind(EmbeddingKind):
    """Interface of embeddings of samples of any length, which go through convolutions over time.

    A recording is padded at its end, and gives one vector (frame) per step of all convolutions together.
    """

    convolutions: StemConvolutions
    """Convolutions in order, each `{channels: 512, kernel: 3, stride: 2}`; the first reads the samples."""

    input_name: ClassVar[str] = "input_values"
    input_title: ClassVar[str] = "Samples"

    @property
    def any_length(self) -> bool:
        return True

    @property
    def step(self) -> int:
        """The number of samples from one vector to the next."""
        return math.prod(convolution.stride for convolution in self.convolutions)

    @property
    def reach(self) -> int:
        """The number of samples that a vector sees, and thus of the shortest input."""
        reach = 1
        for convolution in reversed(self.convolutions):
            reach = (reach - 1) * convolution.stride + convolution.kernel
        return reach

    def drawn_input(self, length: str, context_length: int | None) -> tuple[str | int, ...]:
        return (f"({self.step:,} {length} {plus(self.reach - self.step)})",)

    @property
    def sees_order(self) -> bool:
        return True

    def vector_names(self, count: int, column_seconds: float | None = None) -> list[str]:
        return start_times(count, self.step, column_seconds)

    def input_length(self, vectors: int) -> int:
        return (vectors - 1) * self.step + self.reach

    def vector_count(self, length: int) -> int:
        return max(0, (length - self.reach) // self.step + 1)

    def input_shape(self, context_length: int | None) -> tuple[int, ...]:
        assert context_length is not None
        return (self.input_length(context_length),)

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        for i, convolution in enumerate(self.convolutions):
            if convolution.stride > convolution.kernel:
                yield Fault(
                    ("convolutions", i, "stride"),
                    f"must not exceed the kernel, which is {convolution.kernel}",
                    convolution.stride,
                    f"Use {convolution.kernel} or less.",
                )


@register("embedding")
class Waveform(SampledKind):
    """Samples of audio of any length, through convolutions over time, a norm and a projection (wav2vec 2.0: Baevski et al.,
    2020).

    A recording is padded at its end, and gives one vector (frame) per step of all convolutions together.
    """

    kind: Literal["waveform"] = "waveform"
    convolution_norm: Annotated[
        Literal["group", "layer"],
        ValueDescriptions(
            {
                "group": "Each channel of the first convolution over time, padding included: the model takes no mask "
                "(wav2vec2-base).",
                "layer": "The channels of every convolution at each time (wav2vec2-large-lv60, XLS-R).",
            }
        ),
    ] = "layer"
    """Normalisation before the activations, with an eps of 1e-5."""
    bias: bool = False
    """Whether the convolutions add a bias."""
    activation: Activation = "gelu"
    """Activation of each convolution."""
    projection_norm: Norm | None = None
    """Norm before the projection to `d_model` (wav2vec2). Default: none."""
    norm: Norm | None = None
    """Norm of the sum of projected vectors and positions (wav2vec2-base). Default: none."""
    dropout: Dropout = 0.0
    """Dropout probability on the embeddings during training."""

    @property
    def takes_mask(self) -> bool:
        return self.convolution_norm == "layer"

    def steps(self, context: PartContext) -> Iterator[Step | PositionStep]:
        activation, channels = ACTIVATION_TITLES[self.activation], 1
        for index, convolution in enumerate(self.convolutions):
            over_time = ["norm over time"] if index == 0 else []
            norm = ["layer norm"] if self.convolution_norm == "layer" else over_time
            yield convolution.drawn(f"layers.{index}", channels, *norm, activation)
            channels = convolution.channels
        yield from norm_steps(self.projection_norm, "projection_norm")
        yield Step("Projection", "projection", (WIDTHS,))
        yield PositionStep()
        yield from norm_steps(self.norm)

    def ends(self, vectors: int) -> tuple[InputPart, InputPart] | None:
        if self.convolution_norm != "layer":
            return None
        return (..., slice(0, self.step)), (..., slice(-self.step, None))


@register("embedding")
class FilteredWaveform(SampledKind):
    """Samples of audio of any length, through a convolution without bias (trained filters), an activation and a norm of the
    whole recording, and further convolutions, the last of which gives the vectors (Moonshine: Jeffries et al., 2024).

    The norm has one mean and one variance of all channels and times, padding included, with an eps of 1e-5: the model
    takes no mask.
    """

    kind: Literal["filtered_waveform"] = "filtered_waveform"
    filter_activation: Activation = "tanh"
    """Activation of the first convolution."""
    activation: Activation = "gelu"
    """Activation of each further convolution."""

    def steps(self, context: PartContext) -> Iterator[Step | PositionStep]:
        filters, activation = self.convolutions[0], ACTIVATION_TITLES[self.activation]
        yield filters.drawn("filters", 1, ACTIVATION_TITLES[self.filter_activation])
        yield Step("Norm of the recording", "norm", role="norm")
        for index, (before, convolution) in enumerate(pairwise(self.convolutions)):
            yield convolution.drawn(f"layers.{index}", before.channels, activation)
        yield PositionStep()

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        last = self.convolutions[-1]
        if last.channels != context.d_model:
            yield Fault(
                ("convolutions", len(self.convolutions) - 1, "channels"),
                f"must equal d_model, which is {context.d_model}: the last convolution gives the vectors",
                last.channels,
                f"Use {context.d_model}.",
            )
