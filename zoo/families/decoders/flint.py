"""Flint (2026): ``FlintConfig``, ``FlintModel`` and its heads: Qwen3's mixture with sinks, and rotation in the layers with a window."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    layer_modules,
    llama_tensors,
)
from zoo.families.common.mixtures import EXPERTS, TRAINING, shared
from zoo.families.common.qwen import SparseStep, qwen_mixture
from zoo.families.common.tensors import same
from zoo.families.common.unrotated_layers import GlobalLayers
from zoo.families.common.windowed_layers import Windows

_FIELDS = LlamaFields(
    vocab_size=150144, hidden_size=2048, intermediate_size=6144, layers=49, heads=32, kv_heads=4, head_dim=128,
    context=262144,
)  # fmt: skip


def _default_windows(config: Config, depth: int) -> list[bool]:
    return [layer > 1 and layer % 4 != 1 and layer != depth - 1 for layer in range(depth)]


_WINDOWS = Windows("local", f.Int("sliding_window", default=513), _default_windows)

FAMILIES = (
    Family(
        "flint",
        llama_tensors(
            "flint",
            *EXPERTS,
            *layer_modules(shared("shared_expert")),
            same(f"{LAYER}self_attn.softmax_offset", f"{BLOCK}attention.sinks", also=(f"{LAYER}self_attn.sinks",)),
        ),
        _FIELDS.body(
            attention={
                "bias": f.Bias("attention_bias", default=False),
                "sinks": True,
                "qk_norm": _FIELDS.qk_norm,
            },
            position=_FIELDS.rope(whole=WHOLE_HEADS),
            feed_forward=qwen_mixture(
                _FIELDS,
                256,
                6,
                512,
                shared=_FIELDS.feed_forward(hidden=f.Int("shared_expert_intermediate_size", default=1024)),
                router={"scores": "sigmoid", "normalize": f.Bool("norm_topk_prob", default=True)},
            ),
            varies=(_WINDOWS, GlobalLayers(_WINDOWS), SparseStep(_FIELDS.feed_forward(), (0, 1))),
        ),
        decoder_classes("Flint", without=("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")),
        ignored=TRAINING,
    ),
)  # fmt: skip
