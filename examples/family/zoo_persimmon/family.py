"""Persimmon (Elsen et al., 2023): ``PersimmonConfig``, ``PersimmonModel`` and its heads.

Queries, keys and values are stored as one matrix, head by head.
"""

from zoo.families.common import fields as f
from zoo.families.common.attention import Heads
from zoo.families.common.blocks import mlp
from zoo.families.common.decoders import decoder_tensors, grouped, layer_norm, query_key_value
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Layers
from zoo.families.common.rope import RopeField
from zoo.families.common.tensors import fused, modules

D_MODEL = f.Int("hidden_size", default=4096)
HEADS = Heads(D_MODEL, f.Int("num_attention_heads", default=64), has_head_dim=False)
CONTEXT = f.ContextLength("max_position_embeddings", default=16384)
NORM = layer_norm("layer_norm_eps")

# A spec with fields of the config in the place of values: read by `zoo import`, written by `zoo convert`.
BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=262144),
    "d_model": D_MODEL,
    "context_length": CONTEXT,
    "position": RopeField(HEADS.width, CONTEXT, fraction=0.5),
    "decoder": Layers(
        f.Depth("num_hidden_layers", default=36),
        {
            "kind": "pre_norm",
            "norm": NORM,
            "attention": {
                "*": HEADS,
                "qk_norm": f.When(f.Bool("qk_layernorm", default=True), {"norm": NORM, "over": "head"}),
                "dropout": f.Float("attention_dropout", default=0.0),
            },
            "feed_forward": mlp(16384, "relu2"),
            "dropout": f.Float("hidden_dropout", default=0.0),
        },
    ),
    "initialization": f.normal(),
}

# Stored modules, and the modules of zoo that they are.
LAYER = {
    "input_layernorm": "attention_norm",
    "self_attn.q_layernorm": "attention.query_norm",
    "self_attn.k_layernorm": "attention.key_norm",
    "self_attn.dense": "attention.output",
    "post_attention_layernorm": "feed_forward_norm",
    "mlp.dense_h_to_4h": "feed_forward.up",
    "mlp.dense_4h_to_h": "feed_forward.down",
}
BLOCK = "decoder.blocks.{layer}"
TENSORS = decoder_tensors(
    "persimmon",
    "model.",
    *modules({"embed_tokens": "embedding.token", "final_layernorm": "decoder.final_norm"}),
    *modules(LAYER, "layers.{layer}.", f"{BLOCK}."),
    *fused("layers.{layer}.self_attn.query_key_value", query_key_value(BLOCK), grouped, grouped),
    tokens="score",
)

FAMILIES = (
    Family("persimmon", TENSORS, BODY, decoder_classes("Persimmon", without=("ForQuestionAnswering",))),
)
