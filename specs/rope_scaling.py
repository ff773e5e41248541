"""How rotary frequencies are rescaled for contexts longer than those trained on."""

import math
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from specs.base import Component, Fault, Frame, PositiveFloat, Slot, Width, in_float32
from specs.registry import register

RopeScaling = Annotated[Component, Slot("rope_scaling")]

Factor = Annotated[float, Field(ge=1, allow_inf_nan=False), AfterValidator(in_float32)]
Factors = Annotated[tuple[PositiveFloat, ...], Field(strict=False, min_length=1, max_length=2**16)]


class RopeScalingKind(Component):
    """What every scaling answers; ``by_length`` says that it depends on the length of the input."""

    by_length: ClassVar[bool] = False

    def width_faults(self, dimensions: int) -> Iterable[Fault]:
        """The broken rules between the scaling and the rotated dimensions of a head."""
        return ()

    def amplitude(self, context_length: int | None) -> float:
        """What multiplies cos and sin in a model with this context_length."""
        return 1.0


@register("rope_scaling")
class LinearScaling(RopeScalingKind):
    """Positions divided by ``factor`` (Chen et al., 2023)."""

    kind: Literal["linear"] = "linear"
    factor: Factor


@register("rope_scaling")
class Llama3Scaling(RopeScalingKind):
    """Low frequencies divided by ``factor``, high ones kept, smooth between (Llama 3.1)."""

    kind: Literal["llama3"] = "llama3"
    factor: Factor
    low_freq_factor: PositiveFloat
    high_freq_factor: PositiveFloat
    original_context_length: Width

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if self.high_freq_factor <= self.low_freq_factor:
            yield Fault(
                ("high_freq_factor",),
                f"must exceed low_freq_factor, which is {self.low_freq_factor}",
                self.high_freq_factor,
                f"Llama 3.1 has 4.0 above 1.0; any value above {self.low_freq_factor} would work",
            )


@register("rope_scaling")
class YarnScaling(RopeScalingKind):
    """YaRN (Peng et al., 2023): a ramp between kept and divided frequencies, and a scale on cos and sin.

    ``attention_factor`` defaults to 0.1 ln(factor) + 1; ``truncate`` rounds the ends of the ramp outwards.  Where a config
    has mscale and mscale_all_dim (DeepSeek), it is the ratio of 0.1 mscale ln(factor) + 1 for the two, and the square
    of the latter multiplies the scale of the attention.
    """

    kind: Literal["yarn"] = "yarn"
    factor: Factor
    original_context_length: Width
    beta_fast: PositiveFloat = 32.0
    beta_slow: PositiveFloat = 1.0
    attention_factor: PositiveFloat | None = None
    truncate: bool = True

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if self.beta_fast <= self.beta_slow:
            yield Fault(
                ("beta_fast",),
                f"must exceed beta_slow, which is {self.beta_slow}",
                self.beta_fast,
                "the paper has beta_fast: 32 and beta_slow: 1",
            )

    def amplitude(self, context_length: int | None) -> float:
        return 0.1 * math.log(self.factor) + 1.0 if self.attention_factor is None else self.attention_factor


@register("rope_scaling")
class DynamicNTKScaling(RopeScalingKind):
    """A larger theta where the input is longer than ``original_context_length`` (dynamic NTK, bloc97 and emozilla, 2023).

    theta is multiplied by (factor * length / original_context_length - factor + 1) ** (n / (n - 2)) for n rotated
    dimensions, where the length is that of the longest row.  Keys that are cached keep the angles they got.
    """

    kind: Literal["dynamic_ntk"] = "dynamic_ntk"
    by_length: ClassVar[bool] = True
    factor: Factor
    original_context_length: Width

    def width_faults(self, dimensions: int) -> Iterable[Fault]:
        if dimensions == 2:
            rule = "needs more than one rotated pair: the first keeps its frequency"
            yield Fault(("kind",), rule, self.kind, "rotate 4 dimensions or more, or use linear")


@register("rope_scaling")
class LongRopeScaling(RopeScalingKind):
    """Frequencies divided each by a factor of its own (LongRoPE, Ding et al., 2024; Phi-3).

    ``long_factor`` holds where the longest row is longer than ``original_context_length``, ``short_factor`` elsewhere: a
    number per rotated pair.  ``attention_factor`` multiplies cos and sin (default: sqrt(1 + ln(s) /
    ln(original_context_length)), where s is the model's context_length over the original).
    """

    kind: Literal["longrope"] = "longrope"
    by_length: ClassVar[bool] = True
    short_factor: Factors
    long_factor: Factors
    original_context_length: Annotated[int, Field(ge=2, le=2**24)]
    attention_factor: PositiveFloat | None = None

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if len(self.long_factor) != len(self.short_factor):
            rule = f"must have as many numbers as short_factor, which has {len(self.short_factor)}"
            yield Fault(
                ("long_factor",), rule, len(self.long_factor), f"{len(self.short_factor)} numbers would work"
            )
        if self.attention_factor is None and frame.context_length is None:
            rule = "needs the model's context_length, from which its default follows"
            yield Fault(
                ("attention_factor",), rule, None, "add context_length: 131072, or give attention_factor"
            )

    def width_faults(self, dimensions: int) -> Iterable[Fault]:
        if 2 * len(self.short_factor) != dimensions:
            rule = f"must have a number per rotated pair: of {dimensions} dimensions, {dimensions // 2}"
            remedy = f"{dimensions // 2} numbers would work, or dimensions: {2 * len(self.short_factor)}"
            yield Fault(("short_factor",), rule, len(self.short_factor), remedy)

    def amplitude(self, context_length: int | None) -> float:
        if self.attention_factor is not None:
            return self.attention_factor
        assert context_length is not None
        longer = max(1.0, context_length / self.original_context_length)
        return math.sqrt(1 + math.log(longer) / math.log(self.original_context_length))
