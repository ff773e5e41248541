"""LFM2 and LFM3 (Liquid AI, 2025 and 2026): ``Lfm2Config``, ``Lfm2MoeConfig``, ``Lfm3Config`` and their models: attention in some
layers, short convolutions in the others."""

from __future__ import annotations

from collections.abc import Sequence

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.hybrid import CONVOLUTION, LayersOf
from zoo.families.common.layer_lists import FULL, read_kinds
from zoo.families.common.layers import LayerVariation
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields, layer_modules
from zoo.families.common.mixtures import TRAINING, FirstLayers, experts
from zoo.families.common.template import Template
from zoo.families.common.tensors import Rule, Tensors, affine, modules, projections, same
from zoo.families.common.transforms import Depthwise


def _width(width: int, config: Config) -> int:
    """The width of a feed-forward: two thirds of the config's, times a factor, in multiples of a number."""
    factor = config.float("block_ffn_dim_multiplier", default=1.0)
    multiple = config.int("block_multiple_of", default=256)
    if not config.bool("block_auto_adjust_ff_dim", default=True):
        return width
    if multiple < 1:
        config.refuse("block_multiple_of", "must be at least 1")
    return -(-int(factor * int(2 * width / 3)) // multiple) * multiple


def short_convolution(kernel: int) -> Template:
    """A short convolution; ``kernel`` is the default of its width."""
    return {
        "kind": "short_convolution",
        "kernel_size": f.Int("conv_L_cache", default=kernel),
        "bias": f.Bool("conv_bias", default=False),
    }


def _kinds(config: Config, depth: int) -> list[str]:
    """The words for all layers, listed in layer_types, or those in full_attn_idxs with attention."""
    attending = config.list("full_attn_idxs", default=[*range(depth)])
    default = [FULL if layer in attending else CONVOLUTION for layer in range(depth)]
    return read_kinds(config, "layer_types", depth, (FULL, CONVOLUTION)) or default


_CONVOLUTIONS = LayersOf(
    CONVOLUTION,
    {"attention": None, "mixer": short_convolution(3)},
    _kinds,
    word=lambda block: CONVOLUTION if block.attention is None else FULL,
)


NORM = {"kind": "rms_norm", "eps": f.Float("norm_eps", default=1e-5)}
_LAYER = {
    "operator_norm": "attention_norm",
    "ffn_norm": "feed_forward_norm",
    **projections("self_attn.", "q_proj k_proj v_proj out_proj"),
    "self_attn.q_layernorm": "attention.query_norm",
    "self_attn.k_layernorm": "attention.key_norm",
    "conv.in_proj": "mixer.input",
    "conv.out_proj": "mixer.output",
    "feed_forward.w1": "feed_forward.gate",
    "feed_forward.w3": "feed_forward.up",
    "feed_forward.w2": "feed_forward.down",
}


def lfm2_tensors(name: str, *rules: Rule, without: tuple[str, ...] = ()) -> Tensors:
    """The tensors of LFM2 with further ``rules``, except the modules whose names contain a part in ``without``."""
    kept = {stored: own for stored, own in _LAYER.items() if not any(part in stored for part in without)}
    convolution = Rule(f"{LAYER}conv.conv.weight", (f"{BLOCK}mixer.weight",), Depthwise())
    return Tensors(
        name,
        (
            *modules({"embed_tokens": "embedding.token", "embedding_norm": "decoder.final_norm"}),
            *layer_modules(kept),
            *layer_modules({"operator_norm": "mixer_norm"}),
            convolution,
            same(f"{LAYER}conv.conv.bias", f"{BLOCK}mixer.bias"),
            *rules,
        ),
        prefix="model.",
        outside=("lm_head.",),
        heads={"language_modeling": affine("lm_head", "head.vocabulary")},
        optional=("lm_head.weight",),
    )


def _body(
    fields: LlamaFields, varies: Sequence[LayerVariation], feed_forward: Template
) -> dict[str, Template]:
    return fields.body(
        attention={"bias": False, "dropout": 0.0, "qk_norm": {"norm": NORM, "over": "head"}},
        norm=NORM,
        feed_forward=feed_forward,
        position=fields.rope(theta=1000000.0),
        varies=varies,
    )


def lfm2_classes(prefix: str) -> dict[str, HeadClass]:
    """The body, and the body with scores of the next token."""
    tied = f.Bool("tie_word_embeddings", "tie_embedding", default=True)
    scores = HeadClass("language_modeling", {"tie_embeddings": tied, "bias": False})
    return {f"{prefix}ForCausalLM": scores, f"{prefix}Model": BODY}


_FIELDS = LlamaFields(vocab_size=65536, hidden_size=2560, layers=32, heads=32, kv_heads=8, context=128000)
_MOE = LlamaFields(
    vocab_size=65536, hidden_size=2048, intermediate_size=7168, layers=32, heads=32, kv_heads=8, context=128000
)  # fmt: skip
_UNREAD = (
    "block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale", "block_use_swiglu",
    "block_use_xavier_init", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "num_heads", "theta",
    "use_pos_enc",
)  # fmt: skip
"""Fields of published configs that the reference does not read."""

LFM2 = Family(
    "lfm2",
    lfm2_tensors("lfm2"),
    _body(
        _FIELDS,
        (_CONVOLUTIONS,),
        {
            **_FIELDS.feed_forward(
                hidden=f.Computed(f.Int("intermediate_size", "block_ff_dim", default=12288), _width),
                activation="silu",
            ),
            "*": f.Stated(block_auto_adjust_ff_dim=False),
        },
    ),
    lfm2_classes("Lfm2"),
    ignored=_UNREAD,
)
LFM2_MOE = Family(
    "lfm2_moe",
    lfm2_tensors(
        "lfm2_moe",
        *experts("feed_forward", "w1", "w3", "w2"),
        same(f"{LAYER}feed_forward.expert_bias", f"{BLOCK}feed_forward.router.score_correction_bias"),
    ),
    _body(
        _MOE,
        (_CONVOLUTIONS, FirstLayers(_MOE.feed_forward(activation="silu"), 2, "num_dense_layers")),
        {
            "kind": "mixture",
            "experts": f.Int("num_experts", default=32),
            "top_k": f.Int("num_experts_per_tok", default=4),
            "expert": _MOE.feed_forward(
                hidden=f.Int("moe_intermediate_size", default=1792), activation="silu"
            ),
            "router": {
                "scores": "sigmoid",
                "score_correction_bias": f.Bool("use_expert_bias", default=True),
                "normalize": f.Bool("norm_topk_prob", default=True),
                "scale": f.Float("routed_scaling_factor", default=1.0),
            },
        },
    ),
    lfm2_classes("Lfm2Moe"),
    ignored=(*_UNREAD, *TRAINING),
)
FAMILIES = (LFM2, LFM2_MOE)
