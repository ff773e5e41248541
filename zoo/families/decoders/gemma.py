"""Gemma (Gemma team, 2024) and Gemma 2 (2024): ``GemmaConfig``, ``Gemma2Config`` and their models.

Llama with norms around 0 and a scaled embedding; from Gemma 2 on with a norm after each branch too.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layer_lists import all_but_every
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields, layer_weights, llama_tensors
from zoo.families.common.template import Field, Template
from zoo.families.common.windowed_layers import Windows

IGNORED = ("cache_implementation", "sliding_window_size")  # the second restates sliding_window
CAUSAL = {"use_bidirectional_attention": (False, "a token sees none after it")}
CAP = "final_logit_softcapping"

_FIRST = LlamaFields(
    vocab_size=256000, hidden_size=3072, intermediate_size=24576, layers=28, heads=16, kv_heads=16, head_dim=256,
    context=8192,
)  # fmt: skip
_SECOND = LlamaFields(
    vocab_size=256000, hidden_size=2304, intermediate_size=9216, layers=26, heads=8, kv_heads=4, head_dim=256,
    context=8192,
)  # fmt: skip
ACTIVATION = f.Activation("hidden_activation", "gelu_pytorch_tanh")


_WORDS = {"gelu_pytorch_tanh": "gelu_tanh", **f.ACTIVATIONS, "gelu": "gelu_tanh"}
"""In early configs, gelu means its tanh approximation."""
_EITHER_NAME = f.Equal(
    f.Choice("hidden_act", _WORDS, "gelu_pytorch_tanh"),
    f.Choice(
        "hidden_activation", _WORDS, f.Derived(lambda config: config.text("hidden_act", default="gelu"))
    ),
    because="some readers use one and some the other",
)


def _scale(width: int, config: Config) -> float:
    if width < 1:
        config.refuse("query_pre_attn_scalar", "must be 1 or more: scores are divided by its root")
    return width**-0.5


SCALE = f.Computed(
    f.Int("query_pre_attn_scalar", default=256),
    _scale,
    lambda scale, context: context.head_width() if scale is None else round(scale**-2),
)
"""The scale of scores, stated as a width; the scale is its inverse square root."""


def gemma_body(
    fields: LlamaFields,
    activation: Field,
    *,
    attention: Template = None,
    dropout: Template = None,
    **more: Template,
) -> Template:
    """Return the template of all Gemma models; ``dropout`` applies to embeddings and branches, and ``more`` is as for :meth:`LlamaFields.body`."""
    return fields.body(
        attention={"bias": f.Bias("attention_bias", default=False), **(attention or {})},
        feed_forward=fields.feed_forward(activation=activation, dropout=dropout),
        norm={**fields.norm, "unit_offset": True},
        dropout=dropout,
        more={"embedding": {"scale": "sqrt_d_model", "dropout": dropout}},
        **{"position": fields.rope(whole=WHOLE_HEADS), **more},
    )


WINDOW = f.Int("sliding_window", default=4096, null=True)


def windows(every: int | f.Positive, window: Field = WINDOW, **attention: Template) -> Windows:
    """Windows in all layers except every n-th; ``attention`` holds the other differences of these layers."""
    return Windows("local", window, all_but_every(every), **attention)


SANDWICH_NORMS = layer_weights(
    {
        "input_layernorm": "attention_norm",
        "post_attention_layernorm": "attention_output_norm",
        "pre_feedforward_layernorm": "feed_forward_norm",
        "post_feedforward_layernorm": "feed_forward_output_norm",
    }
)
GEMMA2_TENSORS = llama_tensors("gemma2", *SANDWICH_NORMS, without=("layernorm",))

FAMILIES = (
    Family(
        "gemma",
        llama_tensors("gemma"),
        gemma_body(_FIRST, _EITHER_NAME),
        decoder_classes("Gemma", tied=True, without=("ForQuestionAnswering",)),
        fixed=CAUSAL,
        ignored=IGNORED,
    ),
    Family(
        "gemma2",
        GEMMA2_TENSORS,
        gemma_body(
            _SECOND,
            ACTIVATION,
            kind="sandwich",
            attention={"scale": SCALE, "softcap": f.Float("attn_logit_softcapping", default=50.0, null=True)},
            varies=(windows(2),),
        ),
        decoder_classes(
            "Gemma2",
            tied=True,
            without=("ForQuestionAnswering",),
            softcap=f.Float(CAP, default=30.0, null=True),
        ),
        fixed=CAUSAL,
        ignored=("hidden_act", CAP, *IGNORED),
    ),
)
