"""CWM (FAIR CodeGen team, 2025): ``CwmConfig``, ``CwmModel`` and its head: Llama with windows in three of four layers."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layer_lists import all_but_every
from zoo.families.common.llama_like import LLAMA, WHOLE_HEADS, LlamaFields
from zoo.families.common.rope import RopeParameters
from zoo.families.common.windowed_layers import Windows

_FIELDS = LlamaFields(
    vocab_size=128256, hidden_size=6144, intermediate_size=21504, layers=64, heads=48, kv_heads=8, head_dim=128,
    context=131072, eps=1e-5,
)  # fmt: skip
_LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 1e6, "factor": 16.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip


FAMILIES = (
    Family(
        "cwm",
        LLAMA,
        _FIELDS.body(
            attention={"bias": False},
            position=_FIELDS.rope(whole=WHOLE_HEADS, parameters=RopeParameters(unstated=_LLAMA3), theta=1e6),
            varies=(
                Windows("local", f.Int("sliding_window", default=8192, null=True), all_but_every(4, first=0)),
            ),
        ),
        {"CwmForCausalLM": language_modeling(tied=False, bias=False), "CwmModel": BODY},
        fixed={"mlp_bias": (False, "the checkpoints have no such biases")},
    ),
)
