"""Normalisations."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from specs.base import registry
from specs.base.base import Component, Fault, OmitDefault, PositiveFloat, RuleContext, Slot, custom_error
from specs.base.registry import register
from specs.base.suggest import boolean_remedy
from specs.base.words import PartContext, Step, only_signs

Norm = Annotated[Component, Slot("norm")]


class _NormOrFlag(Slot):
    """A norm, or a boolean for the norm of the blocks."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"type": "boolean"}, super().__get_pydantic_json_schema__(schema, handler)]}

    def validate(self, value: Any) -> Any:
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict | Component):
            rule = f"must be true, false, or a mapping with a `kind` of {self.name}"
            raise custom_error(rule, boolean_remedy(value) or self._example(value, registry.kinds(self.name)))
        return super().validate(value)


FinalNorm = Annotated[Component | bool, _NormOrFlag("norm")]
"""The norm that ends a stack, or whether the blocks' does."""


class StatisticsNorm(Component):
    """A norm that divides vectors by a measure of their size."""

    def details(self, context: PartContext) -> list[str]:
        return []

    def why_insensitive(self, width: int) -> str:
        return only_signs([width])


@register("norm")
class LayerNorm(StatisticsNorm):
    """Layer normalisation (Ba et al., 2016): centred, scaled to unit variance, then weight and bias."""

    kind: Literal["layer_norm"] = "layer_norm"
    title: ClassVar[str] = "LayerNorm"
    eps: PositiveFloat = 1e-5
    """Number added to the variance to avoid division by 0 (BERT: 1e-12)."""
    weight: Annotated[bool, OmitDefault()] = True
    """Whether the result is multiplied by a trained weight per channel (OLMo: false)."""
    unit_offset: Annotated[bool, OmitDefault()] = False
    """Whether weights are stored minus 1, so that 1 is added to them (Nemotron)."""
    bias: bool = True
    """Whether a trained bias per channel is added to the result (OLMo, ModernBERT: false)."""

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from _offset_faults(self)


@register("norm")
class RMSNorm(StatisticsNorm):
    """Root-mean-square normalisation (Zhang and Sennrich, 2019): not centred, weight only."""

    kind: Literal["rms_norm"] = "rms_norm"
    title: ClassVar[str] = "RMSNorm"
    eps: PositiveFloat = 1e-6
    """Number added to the mean square to avoid division by 0 (Llama: 1e-5 or 1e-6)."""
    weight: Annotated[bool, OmitDefault()] = True
    """Whether the result is multiplied by a trained weight per channel (Falcon-Mamba's inner norms: false)."""
    unit_offset: Annotated[bool, OmitDefault()] = False
    """Whether weights are stored minus 1, so that 1 is added to them (Gemma)."""

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from _offset_faults(self)


@register("norm")
class BatchNorm(StatisticsNorm):
    """Batch normalisation (Ioffe and Szegedy, 2015): centred and scaled by statistics of each channel, then weight and bias.

    In training the statistics are those of all vectors of a batch, and their running average is stored: it is used
    everywhere else, and is not counted.
    """

    kind: Literal["batch_norm"] = "batch_norm"
    title: ClassVar[str] = "BatchNorm"
    eps: PositiveFloat = 1e-5
    """Number added to the variance to avoid division by 0."""
    momentum: Annotated[float, Field(gt=0, le=1), OmitDefault()] = 0.1
    """Weight of a batch in the running average during training."""


@register("norm")
class Affine(Component):
    """A weight and a bias per channel, without statistics (the `NoNorm` of MobileBERT: Sun et al., 2020)."""

    kind: Literal["affine"] = "affine"
    title: ClassVar[str] = "Weight and bias"


@register("norm")
class NoNorm(Component):
    """No norm: the identity."""

    kind: Literal["none"] = "none"


def _offset_faults(norm: LayerNorm | RMSNorm) -> Iterable[Fault]:
    if norm.unit_offset and not norm.weight:
        yield Fault(
            ("unit_offset",),
            "must be false in a norm without a weight",
            True,
            "Remove it, or set weight: true.",
        )


def norm_steps(norm: Component | None, module: str = "norm") -> Iterator[Step]:
    """The step of a norm, if there is one."""
    if norm is not None and not norm.is_none:
        yield Step(norm.heading, module, role="norm")
