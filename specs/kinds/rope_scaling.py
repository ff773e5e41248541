"""RoPE scaling: rotary frequencies for contexts longer than in training."""

import math
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from specs.base.base import Component, Fault, PositiveFloat, RuleContext, Slot, Width, in_float32
from specs.base.registry import interface, register
from specs.base.roles import Role
from specs.base.words import TIMES, number_text

Factor = Annotated[float, Field(ge=1, allow_inf_nan=False), AfterValidator(in_float32)]
Factors = Annotated[tuple[PositiveFloat, ...], Field(strict=False, min_length=1, max_length=2**16)]


@interface("rope_scaling")
class RopeScalingKind(Component):
    """Interface of all scalings; ``by_length`` means that the scaling depends on the input length."""

    by_length: ClassVar[bool] = False

    @property
    def brief(self) -> str:
        return self.kind

    @property
    def switch_length(self) -> int | None:
        """The input length beyond which the frequencies differ, or None."""
        return None

    def width_faults(self, dimensions: int) -> Iterable[Fault]:
        """The violated rules between the scaling and the rotated dimensions of a head."""
        return ()

    def theta_faults(self, theta: float) -> Iterable[Fault]:
        """The violated rules between the scaling and the base of the frequencies, relative to the position."""
        return ()

    def amplitude(self, context_length: int | None) -> float:
        """The factor on cos and sin in a model with this context_length."""
        return 1.0


RopeScaling = Annotated[RopeScalingKind, Slot("rope_scaling")]


def factor_text(name: str, factor: float) -> str:
    """A scaling with its factor, in few words."""
    return f"{name} {TIMES} {number_text(factor)}"


@register("rope_scaling")
class LinearScaling(RopeScalingKind):
    """Position interpolation: all positions divided by one factor (Chen et al., 2023)."""

    kind: Literal["linear"] = "linear"
    factor: Factor
    """Divisor of the positions, 1 or more: how many times longer the context becomes."""

    @property
    def brief(self) -> str:
        return factor_text(self.kind, self.factor)


@register("rope_scaling")
class ProportionalScaling(RopeScalingKind):
    """High frequencies kept and the others set to 0, so that later pairs of dimensions do not rotate (Gemma 4)."""

    kind: Literal["proportional"] = "proportional"
    fraction: Annotated[float, Field(gt=0, le=1)]
    """Share of the pairs that rotate, rounded down (Gemma 4: 0.25)."""
    factor: Factor = 1.0
    """Divisor of the positions, 1 or more."""

    @property
    def brief(self) -> str:
        return f"{self.fraction:.0%} of pairs"

    def width_faults(self, dimensions: int) -> Iterable[Fault]:
        if int(self.fraction * dimensions // 2) < 1:
            yield Fault(
                ("fraction",),
                f"must leave at least one of {dimensions // 2} pairs that rotates",
                self.fraction,
                f"Use {2 / dimensions:g} or more.",
            )


@register("rope_scaling")
class Llama3Scaling(RopeScalingKind):
    """Low frequencies divided by a factor, high ones unchanged, with a smooth transition (Llama 3.1) or none (Llama 4)."""

    kind: Literal["llama3"] = "llama3"
    factor: Factor
    """Divisor of the low frequencies, 1 or more (Llama 3.1: 8)."""
    low_freq_factor: PositiveFloat
    """Turns over `original_context_length` up to which a frequency is divided in full (Llama 3.1: 1)."""
    high_freq_factor: PositiveFloat
    """Turns over `original_context_length` from which on a frequency is kept (Llama 3.1: 4, Llama 4: 1)."""
    original_context_length: Width
    """Context length before rescaling, in tokens (Llama 3.1: 8192)."""

    @property
    def brief(self) -> str:
        return factor_text(self.kind, self.factor)

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.high_freq_factor < self.low_freq_factor:
            yield Fault(
                ("high_freq_factor",),
                f"must not be below low_freq_factor, which is {self.low_freq_factor}",
                self.high_freq_factor,
                f"Use {self.low_freq_factor} or more; Llama 3.1 has 4.0 with low_freq_factor 1.0.",
            )


@register("rope_scaling")
class YarnScaling(RopeScalingKind):
    """YaRN (Peng et al., 2023): a ramp between unchanged and divided frequencies, and a factor on cos and sin."""

    kind: Literal["yarn"] = "yarn"
    factor: Factor
    """Divisor of the low frequencies, 1 or more: how many times longer the context becomes."""
    original_context_length: Width
    """Context length before rescaling, in tokens."""
    beta_fast: PositiveFloat = 32.0
    """Turns over `original_context_length` at which the ramp begins: faster frequencies are kept."""
    beta_slow: PositiveFloat = 1.0
    """Turns over `original_context_length` at which the ramp ends: slower frequencies are divided in full."""
    attention_factor: PositiveFloat | None = None
    """Factor on cos and sin. Default: `0.1 * ln(factor) + 1`. A config with `mscale` and `mscale_all_dim` (DeepSeek)
    means the ratio of `0.1 * mscale * ln(factor) + 1` for the two, and the square of the latter on the attention's
    `scale`."""
    truncate: bool = True
    """Whether the ends of the ramp are rounded outwards to whole pairs (GPT-OSS: false)."""

    @property
    def brief(self) -> str:
        return factor_text(self.kind, self.factor)

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.beta_fast < self.beta_slow:
            yield Fault(
                ("beta_fast",),
                f"must be at least beta_slow, which is {self.beta_slow}",
                self.beta_fast,
                "Use beta_fast: 32 and beta_slow: 1, as in the paper.",
            )

    def theta_faults(self, theta: float) -> Iterable[Fault]:
        if theta <= 1:
            yield Fault(
                ("theta",), "must exceed 1, because yarn divides by its logarithm", theta, "Use 10000.0."
            )

    def amplitude(self, context_length: int | None) -> float:
        return 0.1 * math.log(self.factor) + 1.0 if self.attention_factor is None else self.attention_factor


@register("rope_scaling")
class DynamicNTKScaling(RopeScalingKind):
    """Dynamic NTK (bloc97 and emozilla, 2023): a larger `theta` for inputs longer than the original context.

    `theta` is multiplied by `(factor * length / original_context_length - factor + 1) ** (n / (n - 2))` for n rotated
    dimensions, where the length is that of the longest row. Cached keys keep their angles.
    """

    kind: Literal["dynamic_ntk"] = "dynamic_ntk"
    by_length: ClassVar[bool] = True
    factor: Factor
    """How fast `theta` grows with the length of the input, 1 or more."""
    original_context_length: Annotated[Width, Role.ROPE_SWITCH_LENGTH]
    """Length in tokens up to which `theta` is unchanged."""

    @property
    def switch_length(self) -> int:
        return self.original_context_length

    @property
    def brief(self) -> str:
        return factor_text(self.kind, self.factor)

    def width_faults(self, dimensions: int) -> Iterable[Fault]:
        if dimensions == 2:
            rule = "requires more than one rotated pair, because the first keeps its frequency"
            yield Fault(("kind",), rule, self.kind, "Rotate 4 dimensions or more, or use linear.")


@register("rope_scaling")
class LongRopeScaling(RopeScalingKind):
    """LongRoPE (Ding et al., 2024; Phi-3): each frequency divided by its own factor."""

    kind: Literal["longrope"] = "longrope"
    by_length: ClassVar[bool] = True
    short_factor: Annotated[Factors, Role.PER_ROTATED_PAIR]
    """Divisors, one per rotated pair, if no row is longer than `original_context_length`."""
    long_factor: Annotated[Factors, Role.PER_ROTATED_PAIR]
    """Divisors, one per rotated pair, if the longest row exceeds `original_context_length`."""
    original_context_length: Annotated[int, Field(ge=2, le=2**24), Role.ROPE_SWITCH_LENGTH]
    """Length in tokens of the longest row up to which `short_factor` applies (Phi-3: 4096)."""
    attention_factor: PositiveFloat | None = None
    """Factor on cos and sin. Default: `sqrt(1 + ln(s) / ln(original_context_length))`, where s is the model's
    `context_length` divided by the original."""

    @property
    def switch_length(self) -> int:
        return self.original_context_length

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if len(self.long_factor) != len(self.short_factor):
            rule = f"must have as many numbers as short_factor, which has {len(self.short_factor)}"
            yield Fault(("long_factor",), rule, len(self.long_factor), "Use lists of equal length.")
        if self.attention_factor is None and context.context_length is None:
            rule = "requires the model's context_length for its default"
            yield Fault(
                ("attention_factor",), rule, None, "Add context_length: 131072, or set attention_factor."
            )

    def width_faults(self, dimensions: int) -> Iterable[Fault]:
        if 2 * len(self.short_factor) != dimensions:
            rule = f"must have one number per rotated pair, {dimensions // 2} for {dimensions} dimensions"
            remedy = f"Use {dimensions // 2} numbers, or dimensions: {2 * len(self.short_factor)}."
            yield Fault(("short_factor",), rule, len(self.short_factor), remedy)

    def amplitude(self, context_length: int | None) -> float:
        if self.attention_factor is not None:
            return self.attention_factor
        assert context_length is not None
        longer = max(1.0, context_length / self.original_context_length)
        return math.sqrt(1 + math.log(longer) / math.log(self.original_context_length))
