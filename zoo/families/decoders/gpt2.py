"""GPT-2 (Radford et al., 2019): ``GPT2Config``, ``GPT2Model`` and its heads.

Matrices are stored d_in x d_out, and queries, keys and values as one.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp
from zoo.families.common.decoders import decoder_tensors, layer_norm, query_key_value
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, LAST_TOKEN, QUESTION_ANSWERING, SUMMARY, TOKENS, language_modeling
from zoo.families.common.layers import Layers
from zoo.families.common.template import Template
from zoo.families.common.tensors import fused, modules, same, transposed
from zoo.families.common.transforms import STACKED, Transposed

_D_MODEL = f.Int("n_embd", "hidden_size", default=768)
HEADS = f.Int("n_head", "num_attention_heads", default=12)


def gpt2_body(activation: str, attention: Template) -> dict[str, Template]:
    """The template of GPT-2 and StarCoder: their default activation, and the keys that say the kind of ``attention``."""
    return {
        "architecture": "decoder",
        "vocab_size": f.Int("vocab_size", default=50257),
        "d_model": _D_MODEL,
        "context_length": f.Int("n_positions", "max_position_embeddings", default=1024),
        "position": {"kind": "learned"},
        "embedding": {"dropout": f.Float("embd_pdrop", default=0.1)},
        "decoder": Layers(
            f.Depth("n_layer", "num_hidden_layers", default=12),
            {
                "kind": "pre_norm",
                "norm": layer_norm("layer_norm_epsilon"),
                "attention": {
                    **attention,
                    "heads": HEADS,
                    "scale": f.Choice("scale_attn_weights", {True: None, False: 1.0}, True),
                    "dropout": f.Float("attn_pdrop", default=0.1),
                },
                "feed_forward": mlp(
                    f.Int("n_inner", default=f.times(4, _D_MODEL)),
                    f.Activation("activation_function", activation),
                ),
                "dropout": f.Float("resid_pdrop", default=0.1),
            },
        ),
        "initialization": f.normal(depth_scaled=True),
    }


_STORED, _BLOCK = "h.{layer}", "decoder.blocks.{layer}"
_TENSORS = decoder_tensors(
    "gpt2",
    "transformer.",
    *modules({"wte": "embedding.token", "ln_f": "decoder.final_norm"}),
    same("wpe.weight", "embedding.position.table.weight"),
    *modules({"ln_1": "attention_norm", "ln_2": "feed_forward_norm"}, f"{_STORED}.", f"{_BLOCK}."),
    *fused(f"{_STORED}.attn.c_attn", query_key_value(_BLOCK), Transposed(STACKED)),
    *transposed(f"{_STORED}.attn.c_proj", f"{_BLOCK}.attention.output"),
    *transposed(f"{_STORED}.mlp.c_fc", f"{_BLOCK}.feed_forward.up"),
    *transposed(f"{_STORED}.mlp.c_proj", f"{_BLOCK}.feed_forward.down"),
    optional=("lm_head.weight", "score.weight", "classifier.*", "qa_outputs.*"),
    unused=("h.*.attn.bias", "h.*.attn.masked_bias"),
)

FAMILIES = (
    Family(
        "gpt2",
        _TENSORS,
        gpt2_body("gelu_new", {"kind": "multi_head"}),
        {
            "GPT2LMHeadModel": language_modeling(tied=True, bias=False),
            "GPT2Model": BODY,
            "GPT2ForSequenceClassification": LAST_TOKEN,
            "GPT2ForTokenClassification": TOKENS,
            "GPT2ForQuestionAnswering": QUESTION_ANSWERING,
        },
        fixed={
            "scale_attn_by_inverse_layer_idx": (False, "scores scaled by layer index are not supported"),
            "add_cross_attention": (False, "GPT-2 with an encoder is not supported"),
        },
        ignored=("n_ctx", "reorder_and_upcast_attn", "gradient_checkpointing", *SUMMARY),
    ),
)
