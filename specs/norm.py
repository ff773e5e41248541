"""Normalisations."""

from typing import Annotated, Literal

from specs.base import Component, PositiveFloat, Slot, Unsaid
from specs.registry import register

Norm = Annotated[Component, Slot("norm")]


@register("norm")
class LayerNorm(Component):
    """Layer normalisation (Ba et al., 2016): centred, scaled to unit variance, then weight and bias."""

    kind: Literal["layer_norm"] = "layer_norm"
    eps: PositiveFloat = 1e-5
    """Number added to the variance, so that it is never 0 (BERT: 1e-12)."""
    weight: Annotated[bool, Unsaid()] = True
    """Whether the result is multiplied by a trained weight per channel (OLMo: false)."""
    bias: bool = True
    """Whether a trained bias per channel is added to the result (OLMo, ModernBERT: false)."""


@register("norm")
class RMSNorm(Component):
    """Root-mean-square normalisation (Zhang and Sennrich, 2019): not centred, weight only."""

    kind: Literal["rms_norm"] = "rms_norm"
    eps: PositiveFloat = 1e-6
    """Number added to the mean square, so that it is never 0 (Llama: 1e-5 or 1e-6)."""
    unit_offset: Annotated[bool, Unsaid()] = False
    """Whether weights are stored around 0, and 1 is added to them (Gemma)."""


@register("norm")
class NoNorm(Component):
    """No norm: the identity."""

    kind: Literal["none"] = "none"
