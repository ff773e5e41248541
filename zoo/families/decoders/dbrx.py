"""DBRX (Databricks, 2024): ``DbrxConfig``, ``DbrxModel`` and its head: clipped queries, keys and values, and a mixture in every layer.

The matrices of a layer's experts are stored one below the other.
"""

from __future__ import annotations

from typing import Any

from specs.kinds.attention import MultiHeadShape
from specs.kinds.mixture import Mixture
from zoo.families.common import fields as f
from zoo.families.common.attention import per_head
from zoo.families.common.config import Config
from zoo.families.common.decoders import decoder_tensors, query_key_value
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.layers import Layers
from zoo.families.common.rope import RopeField
from zoo.families.common.template import Data, Field, FieldContext
from zoo.families.common.tensors import Rule, fused, modules, weights
from zoo.families.common.transforms import STACKED, Concatenated, Transposed

_D_MODEL = f.Int("d_model", "hidden_size", default=2048)
_HEADS = f.Int("n_heads", "num_attention_heads", default=16)
_CONTEXT = f.ContextLength("max_seq_len", "max_position_embeddings", default=2048)


def _part(config: Config, name: str) -> Config:
    return config.part(name) or Config({}, config.where)


class _Rope(RopeField):
    """The rotation, whose base the published config states in ``attn_config``."""

    def read(self, config: Config) -> Data:
        part, rotation = _part(config, "attn_config"), super().read(config)
        theta = part.float("rope_theta", default=rotation["theta"])
        if config.has("rope_parameters") and theta != rotation["theta"]:
            part.refuse("rope_theta", f"must equal that of rope_parameters, which is {rotation['theta']:g}")
        return {**rotation, "theta": theta}


class _Attention(Field):
    """The attention, with its fields in ``attn_config``."""

    component = MultiHeadShape

    def read(self, config: Config) -> Data:
        part = _part(config, "attn_config")
        heads, kv_heads = _HEADS.read(config), part.int("kv_n_heads", default=1)
        grouped = {"kind": "grouped_query", "kv_heads": kv_heads}
        return {
            **({"kind": "multi_head"} if kv_heads == heads else grouped),
            "heads": heads,
            "bias": False,
            "clip": part.float("clip_qkv"),
            "dropout": part.float("attn_pdrop", default=0.0),
        }

    def write(self, value: MultiHeadShape, context: FieldContext) -> Data:
        part = {
            "kv_n_heads": value.key_value_heads,
            "clip_qkv": value.clip,
            "attn_pdrop": value.dropout,
            "rope_theta": getattr(context.position, "theta", None),
        }
        return {**_HEADS.write(value.heads, context), "attn_config": part}


class _Mixture(Field):
    """The mixture, with its fields in ``ffn_config``."""

    component = Mixture

    def read(self, config: Config) -> Data:
        part = _part(config, "ffn_config")
        norm = part.float(
            "moe_normalize_expert_weights", default=None if part.null("moe_normalize_expert_weights") else 1.0
        )
        if norm not in (None, 1.0):
            part.refuse(
                "moe_normalize_expert_weights", "must be 1 or null: weights are divided by their sum, or not"
            )
        part.must("uniform_expert_assignment", False, "the router chooses the experts")
        activation = part.part("ffn_act_fn") or Config({}, config.where)
        part.must("hidden_size", _D_MODEL.read(config), "experts read and write the stream of d_model")
        return {
            "kind": "mixture",
            "experts": part.int("moe_num_experts", default=4),
            "top_k": part.int("moe_top_k", default=1),
            "router": {"normalize": norm is not None},
            "expert": {
                "kind": "gated",
                "hidden": part.int("ffn_hidden_size", default=3584),
                "activation": activation.choice("name", f.ACTIVATIONS, "silu"),
                "bias": False,
            },
        }

    def write(self, value: Any, context: FieldContext) -> Data:
        (activation,) = f.Activation("name", "silu").write(value.expert.activation, context).values()
        part = {
            "hidden_size": context.model.d_model,
            "moe_num_experts": value.experts,
            "moe_top_k": value.top_k,
            "moe_normalize_expert_weights": 1.0 if value.router.normalize else None,
            "ffn_hidden_size": value.expert.hidden,
            "ffn_act_fn": {"name": activation},
        }
        return {"ffn_config": part}


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
                    "attention": _Attention(),
                    "feed_forward": _Mixture(),
                    "dropout": f.Float("resid_pdrop", default=0.0),
                },
            ),
            "initialization": f.normal(),
        },
        {
            "DbrxForCausalLM": HeadClass("language_modeling", {"tie_embeddings": False, "bias": False}),
            "DbrxModel": BODY,
        },
        fixed={"tie_word_embeddings": (False, "the reference has no tied tables")},
        ignored=("emb_pdrop", "output_router_logits", "router_aux_loss_coef", "num_key_value_heads"),
    ),
)
