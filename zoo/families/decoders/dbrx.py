"""DBRX (Databricks, 2024): ``DbrxConfig``, ``DbrxModel`` and its head: clipped queries, keys and values, and a mixture in every layer.

The matrices of a layer's experts are stored one below the other.
"""

from __future__ import annotations

from specs.kinds.position import PositionKind
from zoo.families.common import fields as f
from zoo.families.common.attention import QueryGroups, per_head
from zoo.families.common.config import Config
from zoo.families.common.decoders import decoder_tensors, query_key_value
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.layers import Layers
from zoo.families.common.rope import RopeField, rope_of
from zoo.families.common.template import Data, Field, FieldContext
from zoo.families.common.tensors import Rule, fused, modules, weights
from zoo.families.common.transforms import STACKED, Concatenated, Transposed

_CONTEXT = f.ContextLength("max_seq_len", "max_position_embeddings", default=2048)


_D_MODEL = f.Int("d_model", "hidden_size", default=2048)
_HEADS = f.Int("n_heads", "num_attention_heads", default=16)


def _attention(field: Field) -> f.Inside:
    return f.Inside("attn_config", field)


def _mixture(field: Field) -> f.Inside:
    return f.Inside("ffn_config", field)


class _Rope(RopeField):
    """The rotation, whose base the published config states in ``attn_config``."""

    def read(self, config: Config) -> Data:
        rotation, part = super().read(config), config.mapping("attn_config")
        if not part.has("rope_theta"):
            return rotation
        theta = part.float("rope_theta")
        if config.has("rope_parameters") and theta != rotation["theta"]:
            part.refuse("rope_theta", f"must equal that of rope_parameters, which is {rotation['theta']:g}")
        return {**rotation, "theta": theta}

    def write(self, value: PositionKind, context: FieldContext) -> Data:
        base = _attention(f.Float("rope_theta")).write(rope_of(value).theta, context)
        return {**super().write(value, context), **base}


_ATTENTION = {
    "*": QueryGroups(_HEADS, _attention(f.Int("kv_n_heads", default=1))),
    "bias": False,
    "clip": _attention(f.Float("clip_qkv", null=True)),
    "dropout": _attention(f.Float("attn_pdrop", default=0.0)),
}
_NORMALIZE = f.Mapped(
    f.Checked(
        f.Float("moe_normalize_expert_weights", default=1.0, null=True),
        lambda norm: norm in (None, 1.0),
        "must be 1 or null: weights are divided by their sum, or not",
    ),
    lambda norm: norm is not None,
    lambda normalize: 1.0 if normalize else None,
)
_MIXTURE = {
    "kind": "mixture",
    "experts": _mixture(f.Int("moe_num_experts", default=4)),
    "top_k": _mixture(f.Int("moe_top_k", default=1)),
    "router": {"normalize": _mixture(_NORMALIZE)},
    "expert": {
        "kind": "gated",
        "hidden": _mixture(f.Int("ffn_hidden_size", default=3584)),
        "activation": _mixture(f.Inside("ffn_act_fn", f.Activation("name", "silu"))),
        "bias": False,
    },
}


_LAYER, _BLOCK = "blocks.{layer}.", "decoder.blocks.{layer}"
_NORMS = {"norm_attn_norm.norm_1": "attention_norm", "norm_attn_norm.norm_2": "feed_forward_norm"}
_EXPERTS, _OURS = f"{_LAYER}ffn.experts.mlp", f"{_BLOCK}.feed_forward.experts"
_TENSORS = decoder_tensors(
    "dbrx",
    "transformer.",
    *modules({"wte": "embedding.token", "norm_f": "decoder.final_norm"}),
    *weights(
        {
            **_NORMS,
            "norm_attn_norm.attn.out_proj": "attention.output",
            "ffn.router.layer": "feed_forward.router",
        },
        _LAYER,
        f"{_BLOCK}.",
    ),
    *fused(f"{_LAYER}norm_attn_norm.attn.Wqkv", query_key_value(_BLOCK), STACKED, STACKED),
    Rule(f"{_EXPERTS}.w1", (f"{_OURS}.gate.weight",), Concatenated()),
    Rule(f"{_EXPERTS}.v1", (f"{_OURS}.up.weight",), Concatenated()),
    Rule(f"{_EXPERTS}.w2", (f"{_OURS}.down.weight",), Concatenated(Transposed())),
)

FAMILIES = (
    Family(
        "dbrx",
        _TENSORS,
        {
            "architecture": "decoder",
            "*": f.Stated(ffn_config=lambda context: {"hidden_size": context.model.d_model}),
            "vocab_size": f.Int("vocab_size", default=32000),
            "d_model": _D_MODEL,
            "context_length": _CONTEXT,
            "position": _Rope(per_head(_D_MODEL, _HEADS), _CONTEXT),
            "embedding": {"dropout": 0.0},
            "decoder": Layers(
                f.Depth("n_layers", "num_hidden_layers", default=24),
                {
                    "kind": "pre_norm",
                    "norm": {"kind": "layer_norm", "eps": 1e-5, "bias": False},
                    "attention": _ATTENTION,
                    "feed_forward": _MIXTURE,
                    "dropout": f.Float("resid_pdrop", default=0.0),
                },
            ),
            "initialization": f.normal(),
        },
        {
            "DbrxForCausalLM": HeadClass("language_modeling", {"tie_embeddings": False, "bias": False}),
            "DbrxModel": BODY,
        },
        fixed={
            "tie_word_embeddings": (False, "the reference has no tied tables"),
            "ffn_config.uniform_expert_assignment": (False, "the router chooses the experts"),
            "ffn_config.hidden_size": (_D_MODEL, "experts read and write the stream of d_model"),
        },
        ignored=(
            "emb_pdrop",
            "output_router_logits",
            "router_aux_loss_coef",
            "num_key_value_heads",
            "ffn_config.moe_jitter_eps",
            "ffn_config.moe_loss_weight",
        ),  # of no effect on outputs
    ),
)
