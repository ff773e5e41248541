"""The position of disentangled attention: vectors of distances, compared with queries and keys."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Dropout, Fault, OmitDefault, RuleContext
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.words import PartContext
from specs.kinds.mixer import AttentionKind
from specs.kinds.norm import Norm
from specs.kinds.position import PositionKind


@register("position")
class Disentangled(PositionKind):
    """A trained vector per distance bucket, shared by the layers of a stack; scores add its products with queries and keys
    (DeBERTa: He et al., 2020).

    Each layer projects the vectors.
    """

    kind: Literal["disentangled"] = "disentangled"
    title: ClassVar[str] = "Disentangled attention"
    buckets: Annotated[int | None, Field(ge=4, le=2**16)] = None
    """Number of buckets on either side, even: half for one short distance each, half of logarithmic width for longer ones
    (DeBERTa-v3: 256). Default: `max_distance`, with a bucket per distance."""
    max_distance: Annotated[int, Field(gt=0, le=2**20)] = 512
    """Distance in tokens beyond which all share the last bucket."""
    terms: Annotated[
        Literal["both", "content_to_position", "position_to_content"],
        ValueDescriptions(
            {
                "both": "The sum of both products.",
                "content_to_position": "Queries with the projected keys of distances.",
                "position_to_content": "Keys with the projected queries of distances.",
            }
        ),
        OmitDefault(),
    ] = "both"
    """Products of a distance that scores add to the product of query and key: one or both."""
    projections: Annotated[
        Literal["shared", "own"],
        ValueDescriptions(
            {
                "shared": "The query and key projections of the layer (DeBERTa-v2 and v3).",
                "own": "Matrices of their own in each layer: one with a bias to queries, one without to keys (DeBERTa).",
            }
        ),
        OmitDefault(),
    ] = "shared"
    """Projections of the vectors."""
    norm: Norm | None = None
    """Norm of the vectors (DeBERTa-v3). Default: none."""
    dropout: Dropout = 0.0
    """Dropout probability on the vectors during training, drawn for each layer."""

    @property
    def owned_by_layers(self) -> bool:
        return self.projections == "own"

    @property
    def read_outside_layers(self) -> bool:
        return self.owned_by_layers

    @property
    def per_side(self) -> int:
        """Number of buckets on either side."""
        return self.buckets or self.max_distance

    @property
    def score_terms(self) -> int:
        return 3 if self.terms == "both" else 2

    @property
    def farthest(self) -> int:
        return self.max_distance

    def details(self, context: PartContext) -> list[str]:
        return [
            f"{2 * self.per_side} distance vectors",
            f"distance < {self.max_distance}",
            "compared with queries and keys" if self.terms == "both" else self.terms.replace("_", " "),
        ]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.norm is not None:
            yield from (fault.under("norm") for fault in self.norm.faults(context))
        if self.buckets is None:
            return
        if self.buckets % 2:
            yield Fault(
                ("buckets",),
                "must be even: half the buckets hold one distance each",
                self.buckets,
                f"Use {self.buckets - 1} or {self.buckets + 1}.",
            )
        elif self.max_distance <= self.buckets // 2 + 1:
            least = self.buckets // 2 + 2
            yield Fault(
                ("max_distance",),
                f"must be at least {least}, because {least - 2} distances on either side have their own bucket",
                self.max_distance,
                f"Use {least} or more, or remove buckets.",
            )

    def attention_faults(self, attention: AttentionKind, context: RuleContext) -> Iterable[Fault]:
        if not attention.projects_heads:
            yield Fault(
                ("kind",),
                "requires query and key projections of d_model, and latent attention has none",
                self.kind,
                "Use rope, or an attention of kind multi_head, grouped_query or multi_query.",
            )
        elif attention.takes_keys_values:
            yield Fault(
                ("kind",),
                "requires a key projection, and a layer that reuses keys and values has none",
                self.kind,
                "Use rope, or remove reuses_keys_values.",
            )
