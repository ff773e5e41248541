"""InternLM 3 (Shanghai AI Laboratory, 2025) and IQuest-Coder (IQuestLab, 2026): configs that transformers computes with Llama's classes."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LLAMA, LlamaFields

_QKV = f.Bias("attention_bias", "qkv_bias", default=False)
_MLP = f.Equal(
    f.Bool("mlp_bias", "bias", default=False),
    f.Bool("attention_bias", "qkv_bias", default=False),
    because="the reference has one setting for all projections of a layer",
)
_CLASSES = decoder_classes("Llama")


_INTERN = LlamaFields(
    vocab_size=128512, intermediate_size=10240, layers=48, kv_heads=2, head_dim=128, context=32768, eps=1e-5
)
_QUEST = LlamaFields(
    vocab_size=76800, hidden_size=5120, intermediate_size=27648, layers=80, heads=40, kv_heads=8, head_dim=128,
    context=131072, eps=1e-5,
)  # fmt: skip

FAMILIES = (
    Family(
        "internlm3",
        LLAMA,
        _INTERN.body(
            attention={"bias": _QKV},
            feed_forward=_INTERN.feed_forward(bias=_MLP),
        ),
        {**_CLASSES, "InternLM3ForCausalLM": _CLASSES["LlamaForCausalLM"]},
    ),
    Family(
        "iquestcoder",
        LLAMA,
        _QUEST.body(
            attention={"bias": f.Bias("attention_bias", default=False)},
            feed_forward=_QUEST.feed_forward(bias=f.Bool("mlp_bias", default=False)),
        ),
        {**_CLASSES, "IQuestCoderForCausalLM": _CLASSES["LlamaForCausalLM"]},
        fixed={
            "clip_qkv": (None, "no checkpoint clips, and the reference refuses it"),
            "use_sliding_window": (False, "no checkpoint has a window, and the reference refuses it"),
        },
        ignored=("sliding_window", "max_window_layers"),
    ),
)
