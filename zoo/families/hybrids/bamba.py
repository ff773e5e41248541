"""Bamba (IBM, Princeton, CMU and UIUC, 2024): ``BambaConfig``, ``BambaModel`` and its head: Llama with Mamba-2 in most layers."""

from __future__ import annotations

from collections.abc import Sequence

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.hybrid import LayersOf
from zoo.families.common.layer_lists import FULL, LINEAR, read_numbers
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mamba import NO_MIXERS, mamba2_rules, prefixed_mamba2
from zoo.families.common.template import Data
from zoo.families.common.tensors import same

_FIELDS = LlamaFields(
    vocab_size=128000, hidden_size=4096, intermediate_size=14336, layers=32, heads=32, kv_heads=8,
    context=262144, eps=1e-5,
)  # fmt: skip


def _kinds(config: Config, depth: int) -> list[str]:
    """The layers with attention are listed by number."""
    attending = read_numbers(config, "attn_layer_indices") or []
    config.ignore("layers_block_type", "layer_types")  # which follow from it
    return [FULL if layer in attending else LINEAR for layer in range(depth)]


def _stated(kinds: Sequence[str]) -> Data:
    attending = [layer for layer, kind in enumerate(kinds) if kind == FULL]
    return {"attn_layer_indices": attending, **({} if LINEAR in kinds else NO_MIXERS)}


_ATTENTION = _FIELDS.attention(bias=f.Bias("attention_bias", default=False))

FAMILIES = (
    Family(
        "bamba",
        llama_tensors(
            "bamba",
            *mamba2_rules(f"{LAYER}mamba", f"{BLOCK}mixer"),
            same(f"{LAYER}input_layernorm.weight", f"{BLOCK}mixer_norm.weight"),
            *layer_modules({"pre_ff_layernorm": "feed_forward_norm"}),
            *layer_modules(
                {f"feed_forward.{part}_proj": f"feed_forward.{part}" for part in ("gate", "up", "down")}
            ),
            without=("post_attention_layernorm", "mlp."),
            final_norm="final_layernorm",
        ),
        _FIELDS.body(
            attention=None,
            mixer=prefixed_mamba2(_FIELDS.d_model, _FIELDS.eps, f.Activation("hidden_act", "silu")),
            feed_forward=_FIELDS.feed_forward(bias=f.Bool("mlp_bias", default=False)),
            position=_FIELDS.rope(fraction=0.5),
            varies=(LayersOf(FULL, {"attention": _ATTENTION, "mixer": None}, _kinds, _stated),),
        ),
        {"BambaForCausalLM": language_modeling(tied=False, bias=False), "BambaModel": BODY},
        ignored=("mamba_chunk_size", "z_loss_coefficient", "num_logits_to_keep"),
    ),
)
