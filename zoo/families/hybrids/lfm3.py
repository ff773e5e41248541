"""LFM3 (Liquid AI, 2026): ``Lfm3Config`` and its models: LFM2 between two norms, with windows in some layers and a gate per head."""

from __future__ import annotations

from specs.kinds.block import BlockParts
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.hybrid import CONVOLUTION, LayersOf
from zoo.families.common.layer_lists import FULL, SLIDING, read_kinds
from zoo.families.common.llama_like import BLOCK, LAYER, WHOLE_HEADS, LlamaFields, layer_modules
from zoo.families.common.rope import RopeParameters
from zoo.families.common.rope_by_window import RopeByWindow
from zoo.families.common.tensors import same
from zoo.families.hybrids.lfm2 import NORM, lfm2_classes, lfm2_tensors, short_convolution


def _word(block: BlockParts) -> str:
    if block.attention is None:
        return CONVOLUTION
    return FULL if block.sliding_window is None else SLIDING


def _default(layer: int) -> str:
    if layer % 4 == 2:
        return FULL
    return SLIDING if layer and layer % 4 == 0 else CONVOLUTION


def _kinds(config: Config, depth: int) -> list[str]:
    default = [_default(layer) for layer in range(depth)]
    return read_kinds(config, "layer_types", depth, (FULL, SLIDING, CONVOLUTION)) or default


_FIELDS = LlamaFields(
    vocab_size=128000, hidden_size=2048, intermediate_size=7680, layers=24, heads=16, kv_heads=4, head_dim=128,
    context=128000,
)  # fmt: skip
_UNSTATED = {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.5}
_POSITIONS = RopeByWindow(
    _FIELDS.heads.width, _FIELDS.context, whole=WHOLE_HEADS, parameters=RopeParameters(unstated=_UNSTATED)
)
_OUTPUT_NORMS = {
    "post_operator_norm": ("attention_output_norm", "mixer_output_norm"),
    "post_ffn_norm": ("feed_forward_output_norm",),
}

FAMILIES = (
    Family(
        "lfm3",
        lfm2_tensors(
            "lfm3",
            *layer_modules(
                {
                    "self_attn.o_proj": "attention.output",
                    "self_attn.q_norm": "attention.query_norm",
                    "self_attn.k_norm": "attention.key_norm",
                }
            ),
            same(
                f"{LAYER}self_attn.gate_proj.weight",
                f"{BLOCK}attention.gate.weight",
                also=(f"{LAYER}self_attn.g_proj.weight",),
            ),
            *(
                same(f"{LAYER}{stored}.weight", f"{BLOCK}{own}.weight")
                for stored, names in _OUTPUT_NORMS.items()
                for own in names
            ),
            without=("self_attn.out_proj", "layernorm"),
        ),
        _FIELDS.body(
            kind=f.Choice("use_sandwich_norm", {True: "sandwich", False: "pre_norm"}, True),
            attention={
                "bias": f.Bias("attention_bias", default=False),
                "qk_norm": {"norm": NORM, "over": "head"},
                "output_gate": f.When(f.Bool("use_attention_gate", default=True), {"over": "head"}),
            },
            norm=NORM,
            feed_forward=_FIELDS.feed_forward(activation="silu"),
            position=_POSITIONS,
            varies=(
                LayersOf(CONVOLUTION, {"attention": None, "mixer": short_convolution(7)}, _kinds, word=_word),
                LayersOf(
                    SLIDING,
                    {
                        "attention": {
                            "window": f.Int("sliding_window", default=256),
                            "position": f.Derived(_POSITIONS.read_local),
                        }
                    },
                    _kinds,
                    word=_word,
                ),
            ),
        ),
        lfm2_classes("Lfm3"),
    ),
)
