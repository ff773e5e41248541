"""dots.llm1 (rednote-hilab, 2025): ``Dots1Config``, ``Dots1Model`` and its head: DeepSeek-V3's mixture with Qwen3's attention."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mixtures import (
    CORRECTION,
    EXPERTS,
    TRAINING,
    ExpertGroups,
    FirstLayers,
    shared,
    sigmoid_mixture,
    sigmoid_router,
)
from zoo.families.common.typed_fields import REQUIRED
from zoo.families.common.windowed_layers import Windows

_FIELDS = LlamaFields(
    vocab_size=152064, hidden_size=4608, intermediate_size=10944, layers=62, heads=32, kv_heads=32
)
_WINDOW = f.Int("sliding_window", default=4096, null=True)
_MIXTURE = sigmoid_mixture(
    _FIELDS,
    sigmoid_router(ExpertGroups(1, 1, 2), normalize=False, scale=1.0),
    experts=REQUIRED,
    top_k=REQUIRED,
    hidden=1408,
    shared=REQUIRED,
)


def _default_windows(config: Config, depth: int) -> list[bool]:
    """Windows from the layer max_window_layers on."""
    first = config.int("max_window_layers", default=62)
    return [_WINDOW.read(config) is not None and layer >= first for layer in range(depth)]


FAMILIES = (
    Family(
        "dots1",
        llama_tensors("dots1", *EXPERTS, CORRECTION, *layer_modules(shared("shared_experts"))),
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=False), "qk_norm": _FIELDS.qk_norm},
            feed_forward=_MIXTURE,
            more={"*": f.Stated(n_routed_experts=1, num_experts_per_tok=1, n_shared_experts=1)},
            varies=(Windows("windowed", _WINDOW, _default_windows), FirstLayers(_FIELDS.feed_forward(), 0)),
        ),
        {"Dots1ForCausalLM": language_modeling(tied=False, bias=False), "Dots1Model": BODY},
        ignored=TRAINING,
    ),
)
