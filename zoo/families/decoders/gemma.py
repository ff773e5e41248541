"""Gemma (Gemma team, 2024) and Gemma 2 (2024): ``GemmaConfig``, ``Gemma2Config`` and their models.

Llama with norms around 0 and a scaled embedding; from Gemma 2 on with a norm after each branch too.
"""

from __future__ import annotations

from collections.abc import Callable

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Windows
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields, layer_weights, llama_tensors
from zoo.families.common.template import Data, Field, FieldContext, Template

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


class _EitherName(Field):
    """The activation, in two fields, as readers use one or the other. In early configs, gelu means its tanh
    approximation."""

    words = {"gelu_pytorch_tanh": "gelu_tanh", **f.ACTIVATIONS, "gelu": "gelu_tanh"}

    def read(self, config: Config) -> str:
        activation = config.choice("hidden_act", self.words, "gelu_pytorch_tanh")
        word = config.text("hidden_act", default="gelu")
        if config.choice("hidden_activation", self.words, word) != activation:
            config.refuse(
                "hidden_activation", "must equal hidden_act, as some readers use one and some the other"
            )
        return activation

    def write(self, value: str, context: FieldContext) -> Data:
        (word,) = f.Choice("hidden_act", self.words, "").write(value, context).values()
        return {"hidden_act": word, "hidden_activation": word}


class _ScaleByWidth(f.Int):
    """The scale of scores, stated as a width; the scale is its inverse square root."""

    def read(self, config: Config) -> float:
        width: int = super().read(config)
        if width < 1:
            config.refuse(self.names[0], "must be 1 or more: scores are divided by its root")
        return width**-0.5

    def write(self, value: float | None, context: FieldContext) -> Data:
        return super().write(context.head_width() if value is None else round(value**-2), context)


SCALE = _ScaleByWidth("query_pre_attn_scalar", default=256)


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


def windows(every: Callable[[Config], int], window: Field = WINDOW, **attention: Template) -> Windows:
    """Windows in all layers except every n-th; ``attention`` holds the other differences of these layers."""

    def usual(config: Config, depth: int) -> list[bool]:
        step = every(config)
        return [(layer + 1) % step != 0 for layer in range(depth)]

    return Windows("local", window, usual, **attention)


GEMMA2_TENSORS = llama_tensors(
    "gemma2",
    *layer_weights(
        {
            "input_layernorm": "attention_norm",
            "post_attention_layernorm": "attention_output_norm",
            "pre_feedforward_layernorm": "feed_forward_norm",
            "post_feedforward_layernorm": "feed_forward_output_norm",
        }
    ),
    without=("layernorm",),
)

FAMILIES = (
    Family(
        "gemma",
        llama_tensors("gemma"),
        gemma_body(_FIRST, _EitherName()),
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
            varies=(windows(lambda config: 2),),
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
