"""The text models of Gemma 3 (Gemma team, 2025): ``Gemma3TextConfig``, ``Gemma3TextModel`` and its heads.

Gemma 2 with norms of queries and keys, and with rotary frequencies of their own in the layers that have a window. EmbeddingGemma
(2025) is the body as an encoder, whose windows reach to both sides.
"""

from __future__ import annotations

from specs.kinds.position import PositionKind
from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, LAST_TOKEN, language_modeling
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields
from zoo.families.common.rope_by_window import RopeByWindow
from zoo.families.common.template import Data, FieldContext
from zoo.families.decoders.gemma import ACTIVATION, CAP, GEMMA2_TENSORS, IGNORED, SCALE, gemma_body, windows

_FIELDS = LlamaFields(
    vocab_size=262208, hidden_size=2304, intermediate_size=9216, layers=26, heads=8, kv_heads=4, head_dim=256,
    context=131072,
)  # fmt: skip
_LOCAL_THETA = "rope_local_base_freq"


class Gemma3Rope(RopeByWindow):
    """The positions, with a field of its own for the base of the windowed layers."""

    def __init__(self, fields: LlamaFields) -> None:
        super().__init__(
            fields.heads.width,
            fields.context,
            theta=1e6,
            whole=WHOLE_HEADS,
            local=f.Float(_LOCAL_THETA, default=10000.0),
        )

    def write(self, value: PositionKind, context: FieldContext) -> Data:
        fields, local = self.write_kinds(context)
        if local["rope_scaling"] is None:
            return {**fields, _LOCAL_THETA: local["rope_theta"]}
        return super().write(value, context)


_POSITIONS = Gemma3Rope(_FIELDS)


_EVERY = f.Positive("sliding_window_pattern", "_sliding_window_pattern", default=6)
_CAUSAL = f.Choice("use_bidirectional_attention", {True: False, False: None}, False)
"""Whether a token sees those before it alone, as in the text models; EmbeddingGemma's see all, as an encoder's do."""

FAMILIES = (
    Family(
        "gemma3_text",
        GEMMA2_TENSORS,
        gemma_body(
            _FIELDS,
            ACTIVATION,
            kind="sandwich",
            attention={
                "scale": SCALE,
                "qk_norm": {"norm": {**_FIELDS.norm, "unit_offset": True}, "over": "head"},
            },
            position=_POSITIONS,
            varies=(windows(_EVERY, position=f.Derived(_POSITIONS.read_local)),),
            stack={"causal": _CAUSAL},
        ),
        {
            "Gemma3ForCausalLM": language_modeling(tied=True, bias=False, softcap=f.Float(CAP)),
            "Gemma3TextModel": BODY,
            "Gemma3TextForSequenceClassification": LAST_TOKEN,
        },
        fixed={"attn_logit_softcapping": (None, "the reference has the field and no such cap")},
        ignored=("hidden_act", CAP, *IGNORED),
    ),
)
