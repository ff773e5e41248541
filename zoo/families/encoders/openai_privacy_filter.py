"""OpenAI Privacy Filter (OpenAI, 2026): ``OpenAIPrivacyFilterConfig`` and its models: GPT-OSS without the causal mask, which finds
personal data in texts."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.gpt_oss import ALPHA, YARN, expert_rules, mixture
from zoo.families.common.heads import BODY, Labels
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields, llama_tensors
from zoo.families.common.mixtures import TRAINING
from zoo.families.common.rope import RopeParameters
from zoo.families.common.transforms import Stacked

_FIELDS = LlamaFields(
    vocab_size=200064, hidden_size=640, intermediate_size=640, layers=8, heads=14, kv_heads=2, head_dim=64,
    context=131072, eps=1e-5,
)  # fmt: skip
_LABELS = 33
"""No label, and for each of eight kinds of data the beginning, the inside, the end and the whole of a mention."""

FAMILIES = (
    Family(
        "openai_privacy_filter",
        llama_tensors(
            "openai_privacy_filter", *expert_rules("encoder.blocks.{layer}.", Stacked(1)), stack="encoder"
        ),
        _FIELDS.body(
            architecture="encoder",
            attention={
                "bias": f.Bias("attention_bias", default=True),
                "sinks": True,
                # in the config, how far a token sees to each side
                "window": f.Mapped(
                    f.Int("sliding_window", default=128),
                    lambda reach: 2 * reach,
                    lambda window: (window or 0) // 2,
                ),
            },
            feed_forward=mixture(_FIELDS.hidden),
            position=_FIELDS.rope(
                theta=150000.0,
                parameters=RopeParameters(unstated=YARN),
                whole=WHOLE_HEADS,
                layout="interleaved",
            ),
        ),
        {
            "OpenAIPrivacyFilterForTokenClassification": HeadClass(
                "token_classification",
                {"labels": Labels(_LABELS), "dropout": f.Float("classifier_dropout", default=0.0)},
            ),
            "OpenAIPrivacyFilterModel": BODY,
        },
        fixed={"swiglu_alpha": ALPHA},
        ignored=("classifier_dropout", "initial_context_length", "experts_per_token", *TRAINING),
    ),
)
