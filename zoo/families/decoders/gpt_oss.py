"""GPT-OSS (OpenAI, 2025): ``GptOssConfig``, ``GptOssModel`` and its heads.

Llama with sinks, and with all experts of a layer as one tensor: d_in x d_out, gate and up by turns.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.gpt_oss import ALPHA, YARN, expert_rules, mixture
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layer_lists import all_but_every
from zoo.families.common.llama_like import BLOCK, WHOLE_HEADS, LlamaFields, llama_tensors
from zoo.families.common.mixtures import TRAINING
from zoo.families.common.rope import RopeParameters
from zoo.families.common.transforms import Interleaved
from zoo.families.common.windowed_layers import Windows

_FIELDS = LlamaFields(
    vocab_size=201088, hidden_size=2880, intermediate_size=2880, layers=36, heads=64, kv_heads=8, head_dim=64,
    context=131072, eps=1e-5,
)  # fmt: skip

FAMILIES = (
    Family(
        "gpt_oss",
        llama_tensors(
            "gpt_oss",
            *expert_rules(BLOCK, Interleaved(1)),
        ),
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=True), "sinks": True},
            feed_forward=mixture(_FIELDS.hidden),
            more={"*": f.Stated(hidden_act="silu")},
            position=_FIELDS.rope(
                theta=150000.0, parameters=RopeParameters(unstated=YARN), whole=WHOLE_HEADS
            ),
            varies=(
                Windows(
                    "local",
                    f.Int("sliding_window", default=128, null=True),
                    all_but_every(2),
                ),
            ),
        ),
        decoder_classes("GptOss", without=("ForQuestionAnswering",)),
        fixed={
            "swiglu_alpha": ALPHA,
            "hidden_act": ("silu", "the experts are gated by x * sigmoid(1.702 x), whatever it says"),
        },
        ignored=(
            "initial_context_length",
            "experts_per_token",
            *TRAINING,
        ),  # of early configs, restated elsewhere
    ),
)
