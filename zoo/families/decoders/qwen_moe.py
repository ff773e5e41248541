"""Qwen2-MoE (Qwen team, 2024) and Qwen3-MoE (Yang et al., 2025): ``Qwen2MoeConfig``, ``Qwen3MoeConfig`` and their models:
Llama with mixtures."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mixtures import EXPERTS, TRAINING, shared
from zoo.families.common.qwen import QwenWindow, QwenWindows, SparseStep, qwen_mixture

_QWEN2 = LlamaFields(
    vocab_size=151936, hidden_size=2048, intermediate_size=5632, layers=24, heads=16, kv_heads=16, context=32768
)  # fmt: skip
_QWEN3 = LlamaFields(
    vocab_size=151936, hidden_size=2048, intermediate_size=6144, layers=24, heads=32, kv_heads=4, context=32768
)  # fmt: skip


_BIAS = f.Bool("qkv_bias", default=True)
_SHARED = _QWEN2.feed_forward(hidden=f.Int("shared_expert_intermediate_size", default=5632))
_GATE = {"mlp.shared_expert_gate": "feed_forward.shared_gate"}

QWEN2_MOE = Family(
    "qwen2_moe",
    llama_tensors("qwen2_moe", *EXPERTS, *layer_modules({**shared("shared_expert"), **_GATE})),
    _QWEN2.body(
        attention={"bias": {"query": _BIAS, "key": _BIAS, "value": _BIAS, "output": False}},
        feed_forward=qwen_mixture(_QWEN2, 60, 4, 1408, shared=_SHARED, shared_gate=True),
        varies=(
            QwenWindows(lambda layer, bound: layer % 2 == 0 and layer < bound),
            SparseStep(_QWEN2.feed_forward()),
        ),
    ),
    decoder_classes("Qwen2Moe"),
    ignored=TRAINING,
)
QWEN3_MOE = Family(
    "qwen3_moe",
    llama_tensors("qwen3_moe", *EXPERTS, head_prefixes={"question_answering": "transformer."}),
    _QWEN3.body(
        attention={
            "bias": f.Bias("attention_bias", default=False),
            "qk_norm": _QWEN3.qk_norm,
            "window": QwenWindow(),
        },
        feed_forward=qwen_mixture(_QWEN3, 128, 8, 768),
        varies=(SparseStep(_QWEN3.feed_forward()),),
    ),
    decoder_classes("Qwen3Moe"),
    ignored=("max_window_layers", *TRAINING),  # a leftover of Qwen2's, which the reference does not read
)
FAMILIES = (QWEN2_MOE, QWEN3_MOE)
