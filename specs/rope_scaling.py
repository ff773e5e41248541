"""How rotary frequencies are rescaled for contexts longer than those trained on."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from specs.base import Component, Fault, Frame, PositiveFloat, Slot, Width
from specs.registry import register

RopeScaling = Annotated[Component, Slot("rope_scaling")]

Factor = Annotated[float, Field(ge=1, allow_inf_nan=False)]


@register("rope_scaling")
class LinearScaling(Component):
    """Positions divided by ``factor`` (Chen et al., 2023)."""

    kind: Literal["linear"] = "linear"
    factor: Factor


@register("rope_scaling")
class Llama3Scaling(Component):
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
class YarnScaling(Component):
    """YaRN (Peng et al., 2023): a ramp between kept and divided frequencies, and a scale on cos and sin.

    ``attention_factor`` defaults to 0.1 ln(factor) + 1; ``truncate`` rounds the ends of the ramp outwards.
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
