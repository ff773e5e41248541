"""GPT-J (Wang and Komatsuzaki, 2021): ``GPTJConfig``, ``GPTJModel`` and its heads."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.decoders import decoder_tensors, layer_norm
from zoo.families.common.family import Family
from zoo.families.common.heads import SUMMARY, decoder_classes
from zoo.families.common.layers import Layers
from zoo.families.common.template import Field, Template
from zoo.families.common.tensors import modules, projections

_D_MODEL = f.Int("n_embd", "hidden_size", default=4096)


def gptj_body(heads: Field) -> Template:
    """Return the template of GPT-J and CodeGen."""
    return {
        "architecture": "decoder",
        "vocab_size": f.Int("vocab_size", default=50400),
        "d_model": _D_MODEL,
        "context_length": f.ContextLength("n_positions", "max_position_embeddings", default=2048),
        "position": {
            "kind": "rope",
            "dimensions": f.HeadWidth("rotary_dim", default=64),
            "layout": "interleaved",
        },
        "embedding": {"dropout": f.Float("embd_pdrop", default=0.0)},
        "decoder": Layers(
            f.Depth("n_layer", "num_hidden_layers", default=28),
            {
                "kind": "parallel",
                "norm": layer_norm("layer_norm_epsilon"),
                "attention": multi_head(heads, dropout=f.Float("attn_pdrop", default=0.0), bias=False),
                "feed_forward": mlp(
                    f.Int("n_inner", default=f.times(4, _D_MODEL)),
                    f.Activation("activation_function", "gelu_new"),
                ),
                "dropout": f.Float("resid_pdrop", default=0.0),
            },
        ),
        "initialization": f.normal(),
    }


_LAYER = {
    "ln_1": "norm",
    **projections("attn."),
    "mlp.fc_in": "feed_forward.up",
    "mlp.fc_out": "feed_forward.down",
}
_TENSORS = decoder_tensors(
    "gptj",
    "transformer.",
    *modules({"wte": "embedding.token", "ln_f": "decoder.final_norm"}),
    *modules(_LAYER, "h.{layer}.", "decoder.blocks.{layer}."),
    unused=("h.*.attn.bias", "h.*.attn.masked_bias", "h.*.attn.embed_positions"),
)

FAMILIES = (
    Family(
        "gptj",
        _TENSORS,
        gptj_body(f.Int("n_head", "num_attention_heads", default=16)),
        decoder_classes("GPTJ", bias=True, without=("ForTokenClassification",)),
        fixed={
            "rotary": (True, "GPT-J without rotary positions existed only in early releases"),
            "scale_attn_weights": (True, "the reference divides scores by the square root of the head width"),
        },
        ignored=("n_ctx", *SUMMARY),
    ),
)
