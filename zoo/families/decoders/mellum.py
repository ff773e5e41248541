"""Mellum 2 (JetBrains, 2026): ``MellumConfig``, ``MellumModel`` and its head: Qwen3's mixture with windows and rotations by kind of layer."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layer_lists import no_layer
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields, llama_tensors
from zoo.families.common.mixtures import EXPERTS, TRAINING
from zoo.families.common.mlp_kinds import MlpKinds
from zoo.families.common.qwen import qwen_mixture
from zoo.families.common.rope_by_window import RopeByWindow
from zoo.families.common.windowed_layers import Windows

_FIELDS = LlamaFields(
    vocab_size=98304, hidden_size=2304, intermediate_size=7168, layers=28, heads=32, kv_heads=4, head_dim=128,
    context=131072,
)  # fmt: skip


_POSITIONS = RopeByWindow(
    _FIELDS.heads.width, _FIELDS.context, theta=500000.0, whole=WHOLE_HEADS, local=10000.0
)
_WINDOWS = Windows(
    "local",
    f.Int("sliding_window", default=1024, null=True),
    no_layer,
    position=f.Derived(_POSITIONS.read_local),
)

FAMILIES = (
    Family(
        "mellum",
        llama_tensors("mellum", *EXPERTS, unused=("mtp.*",)),  # which guesses a further token
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=False), "qk_norm": _FIELDS.qk_norm},
            position=_POSITIONS,
            feed_forward=qwen_mixture(_FIELDS, 64, 8, 896, normalize=True),
            varies=(_WINDOWS, MlpKinds(_FIELDS.feed_forward(), 0)),
        ),
        {"MellumForCausalLM": language_modeling(tied=False, bias=False), "MellumModel": BODY},
        ignored=("num_mtp_layers", "mtp_layer_types", "mtp_mlp_layer_types", *TRAINING),
    ),
)
