"""GPT (Radford et al., 2018): ``OpenAIGPTConfig``, ``OpenAIGPTModel`` and its heads.

Matrices are stored d_in x d_out, and queries, keys and values as one.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.decoders import decoder_tensors, layer_norm, query_key_value
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, LAST_TOKEN, SUMMARY, language_modeling
from zoo.families.common.layers import Layers
from zoo.families.common.tensors import fused, modules, same, transposed
from zoo.families.common.transforms import STACKED, Transposed

_D_MODEL = f.Int("n_embd", "hidden_size", default=768)
_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}
"""The reference has no others, and its "gelu" is the tanh approximation."""

_BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=40478),
    "d_model": _D_MODEL,
    "context_length": f.Int("n_positions", "max_position_embeddings", default=512),
    "position": {"kind": "learned"},
    "embedding": {"dropout": f.Float("embd_pdrop", default=0.1)},
    "decoder": Layers(
        f.Depth("n_layer", "num_hidden_layers", default=12),
        {
            "kind": "post_norm",
            "norm": layer_norm("layer_norm_epsilon"),
            "attention": multi_head(
                f.Int("n_head", "num_attention_heads", default=12), dropout=f.Float("attn_pdrop", default=0.1)
            ),
            "feed_forward": mlp(f.times(4, _D_MODEL), f.Choice("afn", _ACTIVATIONS, "gelu")),
            "dropout": f.Float("resid_pdrop", default=0.1),
        },
    ),
    "initialization": f.normal(),
}

_STORED, _BLOCK = "h.{layer}", "decoder.blocks.{layer}"
_TENSORS = decoder_tensors(
    "openai-gpt",
    "transformer.",
    *modules({"tokens_embed": "embedding.token"}),
    same("positions_embed.weight", "embedding.position.table.weight"),
    *modules({"ln_1": "attention_norm", "ln_2": "feed_forward_norm"}, f"{_STORED}.", f"{_BLOCK}."),
    *fused(f"{_STORED}.attn.c_attn", query_key_value(_BLOCK), Transposed(STACKED)),
    *transposed(f"{_STORED}.attn.c_proj", f"{_BLOCK}.attention.output"),
    *transposed(f"{_STORED}.mlp.c_fc", f"{_BLOCK}.feed_forward.up"),
    *transposed(f"{_STORED}.mlp.c_proj", f"{_BLOCK}.feed_forward.down"),
    unused=("h.*.attn.bias", "position_ids"),
)

FAMILIES = (
    Family(
        "openai-gpt",
        _TENSORS,
        _BODY,
        {
            "OpenAIGPTLMHeadModel": language_modeling(tied=True, bias=False),
            "OpenAIGPTModel": BODY,
            "OpenAIGPTForSequenceClassification": LAST_TOKEN,
        },
        fixed={
            "n_special": (
                0,
                "tokens beyond vocab_size existed only in early releases; include them in vocab_size",
            )
        },
        ignored=("n_ctx", "predict_special_tokens", *SUMMARY),
    ),
)
