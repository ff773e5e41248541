"""BioGPT (Luo et al., 2022): ``BioGptConfig``, ``BioGptModel`` and its heads: OPT's layers with names of its own and a scaled embedding."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.decoders import decoder_heads, decoder_tensors
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, LAST_TOKEN, language_modeling
from zoo.families.common.layers import Layers
from zoo.families.common.tensors import modules, projections, same

_DROPOUT = f.Float("hidden_dropout_prob", default=0.1)
_BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=42384),
    "d_model": f.Int("hidden_size", default=1024),
    "context_length": f.Int("max_position_embeddings", default=1024),
    "position": {"kind": "learned", "offset": 2},
    "embedding": {
        "scale": f.When(f.Bool("scale_embedding", default=True), "sqrt_d_model"),
        "dropout": _DROPOUT,
    },
    "decoder": Layers(
        f.Depth("num_hidden_layers", default=24),
        {
            "kind": "pre_norm",
            "norm": {"kind": "layer_norm", "eps": 1e-5},
            "attention": multi_head(16, dropout=f.Float("attention_probs_dropout_prob", default=0.1)),
            "feed_forward": mlp(4096, "gelu", dropout=f.Float("activation_dropout", default=0.0)),
            "dropout": _DROPOUT,
        },
    ),
    "initialization": f.normal(),
}
_LAYER = {
    "self_attn_layer_norm": "attention_norm",
    **projections("self_attn."),
    "final_layer_norm": "feed_forward_norm",
    "fc1": "feed_forward.up",
    "fc2": "feed_forward.down",
}
_TENSORS = decoder_tensors(
    "biogpt",
    "biogpt.",
    *modules({"embed_tokens": "embedding.token", "layer_norm": "decoder.final_norm"}),
    same("embed_positions.weight", "embedding.position.table.weight"),
    *modules(_LAYER, "layers.{layer}.", "decoder.blocks.{layer}."),
    heads={
        **decoder_heads(),
        "language_modeling": (same("output_projection.weight", "head.vocabulary.weight"),),
    },
    outside=("output_projection.", "score.", "classifier."),
    optional=("output_projection.*", "score.*", "classifier.*"),
)

FAMILIES = (
    Family(
        "biogpt",
        _TENSORS,
        _BODY,
        {
            "BioGptForCausalLM": language_modeling(tied=True, bias=False),
            "BioGptModel": BODY,
            "BioGptForSequenceClassification": LAST_TOKEN,
        },
        ignored=("layerdrop", "layer_norm_eps"),  # the reference's norms have an eps of their own
    ),
)
