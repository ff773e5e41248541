"""StableLM (Bellagente et al., 2024): ``StableLmConfig``, ``StableLmModel`` and its heads."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.attention import Heads
from zoo.families.common.blocks import gated
from zoo.families.common.decoders import ROTATIONS, decoder_tensors, layer_norm
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Layers
from zoo.families.common.rope import RopeField
from zoo.families.common.tensors import modules, projections, same, weights

_D_MODEL = f.Int("hidden_size", default=2560)
_HEADS = Heads(_D_MODEL, f.Int("num_attention_heads", default=32), kv_heads=32, has_head_dim=False)
_CONTEXT = f.ContextLength("max_position_embeddings", default=4096)
_BIAS = f.Bool("use_qkv_bias", default=False)
_QK_NORM = {"norm": layer_norm("layer_norm_eps", bias=False), "over": "each_head"}
_BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=50304),
    "d_model": _D_MODEL,
    "context_length": _CONTEXT,
    "position": RopeField(_HEADS.width, _CONTEXT, fraction=0.25),
    "decoder": Layers(
        f.Depth("num_hidden_layers", default=32),
        {
            "*": f.Kinds(
                f.Bool("use_parallel_residual", default=False),
                {True: {"kind": "parallel"}, False: {"kind": "pre_norm"}},
            ),
            "norm": layer_norm("layer_norm_eps"),
            "attention": {
                "*": _HEADS,
                "bias": {"query": _BIAS, "key": _BIAS, "value": _BIAS, "output": False},
                "qk_norm": f.When(f.Bool("qk_layernorm", default=False), _QK_NORM),
                "dropout": f.Float("attention_dropout", default=0.0),
            },
            "feed_forward": gated(6912, bias=False),
            "dropout": f.Float("hidden_dropout", default=0.0),
        },
    ),
    "initialization": f.normal(),
}

_STORED, _BLOCK = "layers.{layer}.", "decoder.blocks.{layer}."
_LAYER = {
    **projections("self_attn.", "q_proj k_proj v_proj"),
    "post_attention_layernorm": "feed_forward_norm",
}
_UNBIASED = {
    "self_attn.o_proj": "attention.output",
    "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.up",
    "mlp.down_proj": "feed_forward.down",
}
_HEAD_NORM = "self_attn.{}_layernorm.norms.{{head}}.weight"
_TENSORS = decoder_tensors(
    "stablelm",
    "model.",
    *modules({"embed_tokens": "embedding.token", "norm": "decoder.final_norm"}),
    *modules({"input_layernorm": "norm"}, _STORED, _BLOCK),
    *modules({"input_layernorm": "attention_norm"}, _STORED, _BLOCK),
    *modules(_LAYER, _STORED, _BLOCK),
    *weights(_UNBIASED, _STORED, _BLOCK),
    same(f"{_STORED}{_HEAD_NORM.format('q')}", f"{_BLOCK}attention.query_norm.weight"),
    same(f"{_STORED}{_HEAD_NORM.format('k')}", f"{_BLOCK}attention.key_norm.weight"),
    tokens="score",
    unused=ROTATIONS,
)

FAMILIES = (
    Family("stablelm", _TENSORS, _BODY, decoder_classes("StableLm", without=("ForQuestionAnswering",))),
)
