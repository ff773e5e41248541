"""Feed-forward layers."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Component, Dropout, Multiplier, OmitDefault, PositiveFloat, Slot, Spec, Width
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import PartContext, factor_details, number_text, product
from specs.kinds.activation import ACTIVATION_TITLES, GATE_TITLES, Activation

FeedForward = Annotated[Component, Slot("feed_forward")]


class TwoLayer(Component):
    """Fields common to feed-forwards with a hidden layer."""

    hidden: Annotated[Width, Role.WIDTH]
    """Width of the hidden layer (GPT-2: `4 * d_model`)."""
    activation: Activation
    """Activation of the hidden layer, or of the gate in `gated`."""
    bias: bool | Literal["output"] = True
    """Whether all layers of the feed-forward add a bias; `output`: only the last (GTE)."""
    dropout: Dropout = 0.0
    """Dropout probability on the hidden layer during training."""

    @property
    def hidden_bias(self) -> bool:
        """Whether the layers before the product or activation add a bias."""
        return self.bias is True

    @property
    def output_bias(self) -> bool:
        """Whether the last layer adds a bias."""
        return self.bias is not False

    def details(self, context: PartContext) -> list[str]:
        return [
            f"{context.read_width:,} → {self.hidden:,} → {context.width:,}",
            ACTIVATION_TITLES[self.activation],
        ]

    @property
    def brief(self) -> str:
        return f"{ACTIVATION_TITLES[self.activation]} {self.hidden:,}"


@register("feed_forward")
class MLP(TwoLayer):
    """Two layers: down(activation(up(x))) (Vaswani et al., 2017)."""

    kind: Literal["mlp"] = "mlp"
    title: ClassVar[str] = "Feed-forward"


class GatedMultipliers(Spec):
    """Constant factors inside a gated feed-forward and on its output."""

    gate: Multiplier = 1.0
    """Factor on the gate, before `limit` and the activation."""
    output: Multiplier = 1.0
    """Factor on the result of the last layer."""


@register("feed_forward")
class Gated(TwoLayer):
    """Gated linear unit: down(activation(gate(x)) * up(x)) (Shazeer, 2020). SwiGLU is `silu`, GeGLU is `gelu`."""

    kind: Literal["gated"] = "gated"
    title: ClassVar[str] = "Gated feed-forward"
    limit: PositiveFloat | None = None
    """Bound c before the activation: the gate is clamped to at most c, up to [-c, c] (GPT-OSS: 7.0). Default:
    unbounded."""
    up_offset: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Number added to up before the product (GPT-OSS: 1.0). Default: 0."""
    sparsity: Annotated[float | None, Field(gt=0, lt=1), OmitDefault()] = None
    """Share of the gate's values, if they are normally distributed, that become 0: those above the mean and a multiple of the
    standard deviation are lowered by these (Gemma 3n: 0.95). Default: none."""
    multipliers: GatedMultipliers = GatedMultipliers()
    """Constant factors on the gate and the output (Falcon-H1). Default: 1."""

    @property
    def heading(self) -> str:
        return f"Feed-forward, {GATE_TITLES[self.activation]}"

    @property
    def brief(self) -> str:
        return f"{GATE_TITLES[self.activation]} {self.hidden:,}"

    def details(self, context: PartContext) -> list[str]:
        details = [f"{context.read_width:,} → {product(2, self.hidden)} → {context.width:,}"]
        if self.limit is not None:
            details.append(f"limit {number_text(self.limit)}")
        if self.up_offset is not None:
            details.append(f"up {self.up_offset:+g}")
        return details + factor_details(self.multipliers)
