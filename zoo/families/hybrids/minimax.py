"""MiniMax-01 (MiniMax, 2025): ``MiniMaxConfig``, ``MiniMaxModel`` and its heads: lightning attention in most layers, Mixtral's
attention in the others, and mixtures of experts; residuals begin after the norm."""

from __future__ import annotations

from specs.base.base import Component
from specs.kinds.linear_attention import LinearAttention
from specs.kinds.position import PositionKind
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.hybrid import MIXERS, LayersOf
from zoo.families.common.layer_lists import FULL, LINEAR, read_kinds
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    layer_modules,
    layer_weights,
    llama_tensors,
)
from zoo.families.common.mixtures import MIXTRAL_EXPERTS, TRAINING, mixture
from zoo.families.common.rope import RopeField, rope_of
from zoo.families.common.template import Data, FieldContext, Template, UnfitError, read
from zoo.families.common.tensors import fused
from zoo.families.common.transforms import Grouped


class _Rope(RopeField):
    """Rotary positions of whole heads, or of the part that published configs state, which the reference does not read."""

    def read(self, config: Config) -> Data:
        position = super().read(config)
        width: int = read(self.width, config)
        rotated = config.int("rotary_dim", default=width)
        return position if rotated == width else {**position, "dimensions": rotated}

    def write(self, value: PositionKind, context: FieldContext) -> Data:
        if rope_of(value).dimensions not in (None, context.head_width()):
            raise UnfitError(f"a rotated part of each head: {self.whole}")
        return super().write(value, context)


def _kinds(config: Config, depth: int) -> list[str]:
    """The words for all layers: by default attention in every second, from the first on."""
    default = [LINEAR if layer % 2 else FULL for layer in range(depth)]
    return read_kinds(config, "layer_types", depth, MIXERS) or default


def _residual(branch: str) -> dict[str, Template]:
    """The factors of a branch, and of the stream beside it."""
    return {
        "kind": "add",
        "scale": f.Float(f"{branch}_beta_factor", default=1.0),
        "stream_scale": f.Float(f"{branch}_alpha_factor", default=1.0),
    }


def _heads(spec: Model) -> Grouped:
    """Queries, keys and values, head by head."""
    mixers = (block.mixer for block in spec.last_stack.layer_blocks())
    return Grouped(next(mixer.heads for mixer in mixers if isinstance(mixer, LinearAttention)))


_FIELDS = LlamaFields(intermediate_size=14336, kv_heads=8, context=131072, eps=1e-5)
_LIGHTNING = {
    "kind": "linear_attention",
    "heads": _FIELDS.heads.heads,
    "key_width": _FIELDS.heads.width,
    "value_width": _FIELDS.heads.width,
    "activation": f.Activation("hidden_act", "silu"),
}
_LINEAR = {"attention": None, "mixer": _LIGHTNING, "residual": _residual("linear_attn")}

FAMILIES = (
    Family(
        "minimax",
        llama_tensors(
            "minimax",
            *fused(
                f"{LAYER}self_attn.qkv_proj",
                (f"{BLOCK}mixer.query", f"{BLOCK}mixer.key", f"{BLOCK}mixer.value"),
                _heads,
                _heads,
            ),
            *layer_weights(
                {
                    "self_attn.output_gate": "mixer.gate",
                    "self_attn.norm": "mixer.norm",
                    "self_attn.out_proj": "mixer.output",
                }
            ),
            *layer_modules({"input_layernorm": "mixer_norm"}),
            *MIXTRAL_EXPERTS,
            without=("mlp.", "q_norm", "k_norm"),
            unused=(
                "layers.*.self_attn.slope_rate",
                "layers.*.self_attn.query_decay",
                "layers.*.self_attn.key_decay",
                "layers.*.self_attn.diagonal_decay",
            ),
        ),
        _FIELDS.body(
            kind="normed_residual",
            attention={"bias": False, "window": f.Int("sliding_window")},
            feed_forward=mixture(8, 2, _FIELDS.feed_forward()),
            residual=_residual("full_attn"),
            feed_forward_residual=f.Computed(  # by default the attention's
                _residual("mlp"),
                lambda residual, config: residual,
                lambda residual, context: residual or context.block.residual,
                Component | None,
            ),
            position=_Rope(_FIELDS.heads.width, _FIELDS.context, theta=1e6, whole=WHOLE_HEADS),
            varies=(LayersOf(LINEAR, _LINEAR, _kinds),),
        ),
        decoder_classes("MiniMax"),
        fixed={
            "postnorm": (True, "the reference begins residuals after the norm"),
            "shared_intermediate_size": (0, "the reference has no shared expert"),
        },
        ignored=("block_size", "shared_moe_mode", *TRAINING),
    ),
)
