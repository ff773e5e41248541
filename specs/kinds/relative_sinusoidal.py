"""The position of Transformer-XL: sinusoids of distances, projected by every layer and compared with queries."""

from collections.abc import Iterable
from typing import Literal

from specs.base.base import Dropout, Fault, PositiveFloat, RuleContext
from specs.base.registry import register
from specs.base.words import PartContext
from specs.kinds.mixer import AttentionKind
from specs.kinds.position import PositionKind, equal_heads_faults, paired_width_faults


@register("position")
class RelativeSinusoidal(PositionKind):
    """Sines and cosines of the distance of query and key, which every layer projects and compares with queries
    (Transformer-XL: Dai et al., 2019; Conformer, Parakeet).

    A score is the sum of (query + u) * key and (query + v) * projected distance, with trained vectors u and v for each head.
    """

    kind: Literal["relative_sinusoidal"] = "relative_sinusoidal"
    base: PositiveFloat = 10000.0
    """Base of the geometric sequence of wavelengths."""
    dropout: Dropout = 0.0
    """Dropout probability on the sines and cosines during training."""

    @property
    def owned_by_layers(self) -> bool:
        return True

    def details(self, context: PartContext) -> list[str]:
        return ["distances, projected", "compared with queries"]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        return paired_width_faults(self, context)

    def attention_faults(self, attention: AttentionKind, context: RuleContext) -> Iterable[Fault]:
        return equal_heads_faults(self, attention)
