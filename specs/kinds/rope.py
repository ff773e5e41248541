"""Rotary position encoding."""

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

from specs.base.base import Fault, OmitDefault, PositiveFloat, RuleContext, Width
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import PartContext, number_text
from specs.kinds.mixer import AttentionKind
from specs.kinds.position import PositionKind, QueryScaling
from specs.kinds.rope_scaling import RopeScaling
from specs.kinds.rope_sections import RopeSections


@register("position")
class Rope(PositionKind):
    """Rotary embedding of queries and keys (Su et al., 2021)."""

    kind: Literal["rope"] = "rope"
    title: ClassVar[str] = "RoPE"
    theta: PositiveFloat = 10000.0
    """Base of the frequencies: pair i of n rotates by `theta ** (-i / n)` radians per position (Llama 3: 500000)."""
    dimensions: Annotated[Width | None, Role.ROTATED] = None
    """Number of rotated dimensions, the first ones of each head; it must be even (GPT-J: 64, Phi-2: 32). Default: all."""
    layout: Annotated[
        Literal["half_split", "interleaved"],
        ValueDescriptions(
            {
                "half_split": "Dimension i is paired with i + n/2 of n (Llama, GPT-NeoX).",
                "interleaved": "Neighbouring dimensions are paired (the paper, GPT-J).",
            }
        ),
    ] = "half_split"
    """Pairing of dimensions."""
    rotates: Annotated[
        Literal["queries_and_keys", "input"],
        ValueDescriptions(
            {
                "queries_and_keys": "The projected queries and keys of each head.",
                "input": "The input of the query and key projections, in pieces as wide as a head (wav2vec2-Conformer).",
            }
        ),
        OmitDefault(),
    ] = "queries_and_keys"
    """Vectors that are rotated."""
    frequencies: Annotated[
        Literal["computed", "stored"],
        ValueDescriptions(
            {
                "computed": "From `theta`, in float32.",
                "stored": "A tensor of the checkpoint, which may hold them rounded; from `theta` where it has none (ESM-2).",
            }
        ),
        OmitDefault(),
    ] = "computed"
    """Source of the frequencies."""
    scaling: RopeScaling | None = None
    """Rescaling of the frequencies for contexts longer than those trained on. Default: none."""
    query_scaling: QueryScaling | None = None
    """Growth of the queries with their position (Ministral 3). Default: none."""
    sections: Annotated[RopeSections | None, OmitDefault()] = None
    """Rotation of the vectors of images by frame, row and column (M-RoPE), in a vision-language model with `packed_patches`. For
    text, and without images, the three are equal. Default: by the place in the sequence alone."""

    @property
    def by_axis(self) -> bool:
        return self.sections is not None

    @property
    def switch_length(self) -> int | None:
        return None if self.scaling is None else self.scaling.switch_length

    @property
    def query_growth(self) -> QueryScaling | None:
        return self.query_scaling

    @property
    def rotates_input(self) -> bool:
        return self.rotates == "input"

    def details(self, context: PartContext) -> list[str]:
        width = context.width
        part = [] if self.dimensions in (None, width) else [f"{self.dimensions} of {width} dims"]
        scaling = [] if self.scaling is None else [self.scaling.brief]
        axes = [] if self.sections is None else ["frames, rows and columns"]
        turned = ["of the input"] if self.rotates_input else []
        stored = ["stored frequencies"] if self.frequencies == "stored" else []
        return [f"θ {number_text(self.theta)}", *part, *scaling, *axes, *turned, *stored]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.dimensions is not None and self.dimensions % 2:
            yield Fault(
                ("dimensions",),
                "must be even: dimensions rotate in pairs",
                self.dimensions,
                f"Use {self.dimensions - 1} or {self.dimensions + 1}.",
            )
        if self.frequencies == "stored" and (self.scaling is not None or self.sections is not None):
            yield Fault(
                ("frequencies",),
                "must be computed with scaling or sections",
                self.frequencies,
                "Use computed, or remove scaling and sections.",
            )
        if self.scaling is not None:
            yield from self.scaling.theta_faults(self.theta)
            yield from (fault.under("scaling") for fault in self.scaling.faults(context))
        if self.sections is not None and not context.causal:
            yield Fault(
                ("sections",),
                "belong to a decoder, among whose tokens images are",
                list(self.sections.pairs),
                "Remove them, or use axial_rope.",
            )
        if self.sections is not None and self.scaling is not None and self.scaling.by_length:
            yield Fault(
                ("scaling", "kind"),
                "must not depend on the length of an input where pairs rotate by axis",
                self.scaling.kind,
                "Use yarn or linear, or remove sections.",
            )
        if self.sections is not None and self.query_scaling is not None:
            yield Fault(
                ("query_scaling",),
                "must not be set where pairs rotate by axis, which has no single position",
                self.query_scaling.length,
                "Remove it, or remove sections.",
            )

    def attention_faults(self, attention: AttentionKind, context: RuleContext) -> Iterable[Fault]:
        width = attention.head_width(context.d_model)
        if self.rotates_input:
            yield from self._input_faults(attention, width, context)
        if self.sections is not None and 2 * sum(self.sections.pairs) != (self.dimensions or width):
            yield Fault(
                ("sections", "pairs"),
                f"must have the sum {(self.dimensions or width) // 2}, half the rotated dimensions",
                list(self.sections.pairs),
                "Change one of the three numbers.",
            )
        if self.dimensions is None and width % 2:
            yield Fault(
                ("kind",),
                f"requires an even head width, because dimensions rotate in pairs; it is {width}",
                self.kind,
                "Set an even head_dim or another number of heads"
                + (f", or rotate part of each head with dimensions: {width - 1}." if width > 1 else "."),
            )
        elif self.dimensions is not None and self.dimensions > width:
            yield Fault(
                ("dimensions",),
                f"must not exceed the width of a head, which is {width}",
                self.dimensions,
                f"Use an even number up to {width - width % 2}.",
            )
        elif self.scaling is not None:
            yield from (
                fault.under("scaling") for fault in self.scaling.width_faults(self.dimensions or width)
            )

    def axis_faults(self) -> Iterable[Fault]:
        if self.sections is not None:
            yield Fault(
                ("sections",),
                "belong to the decoder of a vision-language model with packed_patches, whose images have rows and columns",
                list(self.sections.pairs),
                "Remove them.",
            )

    def layer_faults(self, others: Sequence[PositionKind]) -> Iterable[Fault]:
        if self.sections is not None and any(other.query_growth for other in others):
            yield Fault(
                ("sections",),
                "must not be set beside query_scaling of some layers: where pairs rotate by axis there is no single position",
                list(self.sections.pairs),
                "Remove it, or remove query_scaling.",
            )

    def _input_faults(self, attention: AttentionKind, width: int, context: RuleContext) -> Iterable[Fault]:
        if not attention.projects_heads or self.sections is not None:
            yield Fault(
                ("rotates",),
                "must be queries_and_keys in latent attention, and where pairs rotate by axis",
                self.rotates,
                "Remove it.",
            )
        elif not attention.has_own_values:
            yield Fault(
                ("rotates",),
                "requires keys and values of the layer's own, because values are not rotated",
                self.rotates,
                "Remove it, or remove values and reuses_keys_values.",
            )
        elif context.d_model % width:
            yield Fault(
                ("rotates",),
                f"requires a head width that divides the input, whose width is {context.d_model}",
                width,
                "Remove it, or remove head_dim.",
            )
