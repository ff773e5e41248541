"""K-EXAONE (LG AI Research, 2025): ``ExaoneMoeConfig``, ``ExaoneMoeModel`` and its head: EXAONE 4's attention and DeepSeek-V3's mixture."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layer_lists import all_but_every_fourth
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mixtures import (
    EXPERTS,
    TRAINING,
    ExpertGroups,
    shared,
    sigmoid_mixture,
    sigmoid_router,
)
from zoo.families.common.mlp_kinds import MlpKinds
from zoo.families.common.tensors import same
from zoo.families.common.windowed_layers import Windows
from zoo.families.decoders.exaone4 import WindowlessLayers

_FIELDS = LlamaFields(vocab_size=102400, intermediate_size=16384, kv_heads=32, eps=1e-5)
_WINDOWS = Windows("local", f.Int("sliding_window", default=4096, null=True), all_but_every_fourth)
_MIXTURE = sigmoid_mixture(
    _FIELDS,
    sigmoid_router(ExpertGroups(1, 1, 2), normalize=True, scale=2.5),
    experts=64,
    top_k=8,
    hidden=1024,
    shared=1,
    names=("num_experts", "num_shared_experts"),
)

FAMILIES = (
    Family(
        "exaone_moe",
        llama_tensors(
            "exaone_moe",
            *EXPERTS,
            same(
                f"{LAYER}mlp.e_score_correction_bias",
                f"{BLOCK}feed_forward.router.score_correction_bias",
                also=(f"{LAYER}mlp.gate.e_score_correction_bias",),
            ),
            *layer_modules(shared("shared_experts")),
            unused=("mtp.*",),  # guesses a further token
        ),
        _FIELDS.body(
            attention={"bias": False, "qk_norm": _FIELDS.qk_norm},
            feed_forward=_MIXTURE,
            varies=(_WINDOWS, WindowlessLayers(_WINDOWS), MlpKinds(_FIELDS.feed_forward(), 1)),
        ),
        {"ExaoneMoeForCausalLM": language_modeling(tied=False, bias=False), "ExaoneMoeModel": BODY},
        ignored=TRAINING,
    ),
)
