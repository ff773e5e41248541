"""The text models of models with images or sound, without these: ``Qwen2VLTextConfig``, ``PaddleOCRTextConfig``, ``Glm4vTextConfig`` and
others, whose heads rotate by sections.

Text counts alike along all axes. Each family has the class of the whole model, whose scores of text its decoder gives, and that of the
text model.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import LLAMA, LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mixtures import CORRECTION, TRAINING, shared
from zoo.families.common.qwen import SparseStep, qwen_mixture
from zoo.families.common.qwen_vl import RopeOfText
from zoo.families.common.rope import RopeField
from zoo.families.common.transforms import SAME, Stacked
from zoo.families.decoders.glm import GLM4_TENSORS, glm_body
from zoo.families.decoders.glm4_moe import TENSORS as GLM4_MOE
from zoo.families.decoders.glm4_moe import glm4_moe_body, glm4_moe_fields
from zoo.families.decoders.qwen_moe import QWEN3_MOE
from zoo.families.vision_language.qwen2_vl import TEXT as QWEN2_VL
from zoo.families.vision_language.qwen3_vl import TEXT as QWEN3_VL
from zoo.families.vision_language.qwen3_vl_moe import TEXT as QWEN3_VL_MOE
from zoo.families.vision_language.qwen3_vl_moe import experts_in_one


def _alone(family: Family, whole: str, text: str, model_type: str = "") -> Family:
    """A family with the classes of the whole model and of its text model, which counts along one axis."""
    assert isinstance(family.body, dict)
    sections: RopeField = family.body["position"]
    position = RopeOfText(
        sections.width, sections.context, theta=sections.theta, fraction=sections.fraction, **sections.more
    )
    return replace(
        family,
        model_type=model_type or family.model_type,
        body={**family.body, "position": position},
        classes={whole: language_modeling(tied=False, bias=False), text: BODY},
    )


_PADDLE = LlamaFields(
    vocab_size=103424, hidden_size=1024, intermediate_size=3072, layers=18, heads=16, kv_heads=2, head_dim=128,
    context=131072, eps=1e-5,
)  # fmt: skip
PADDLE = Family(
    "paddleocr_vl_text",
    LLAMA,
    _PADDLE.body(
        attention={"bias": f.Bias("use_bias", default=False), "dropout": 0.0},
        feed_forward=_PADDLE.feed_forward(bias=f.Bool("use_bias", default=False)),
        position=_PADDLE.rope(theta=5e5),
    ),
)


def _glm(model_type: str, fields: LlamaFields, *, bias: bool) -> Family:
    position = fields.rope(layout="interleaved")
    biases = {"query": bias, "key": bias, "value": bias, "output": False}
    return Family(model_type, GLM4_TENSORS, glm_body("sandwich", fields, biases, position))


_GLM4V = LlamaFields(
    vocab_size=151552, intermediate_size=13696, layers=40, kv_heads=2, context=32768, eps=1e-5
)
_GLM_OCR = LlamaFields(
    vocab_size=59392, hidden_size=1024, intermediate_size=4096, layers=16, heads=16, kv_heads=8, context=131072, eps=1e-5
)  # fmt: skip
_GLM4V_MOE = glm4_moe_fields(151424, 65536)
GLM4V_MOE = Family(
    "glm4v_moe_text",
    llama_tensors(
        "glm4v_moe_text",
        *experts_in_one(Stacked(1), SAME),
        CORRECTION,
        *layer_modules({"mlp.gate": "feed_forward.router", **shared("shared_experts")}),
        other=replace(GLM4_MOE, name="glm4v_moe_text"),
    ),
    glm4_moe_body(_GLM4V_MOE, _GLM4V_MOE.rope(fraction=0.5), bias=True),
    ignored=TRAINING,
)
_OMNI = LlamaFields(
    vocab_size=3584, hidden_size=2048, intermediate_size=18944, layers=28, heads=28, kv_heads=4, context=32768
)
OMNI_MOE = Family(
    "qwen3_omni_moe_text",
    replace(QWEN3_MOE.tensors, name="qwen3_omni_moe_text"),
    _OMNI.body(
        attention={"bias": f.Bias("attention_bias", default=False), "qk_norm": _OMNI.qk_norm},
        position=_OMNI.rope(theta=1e6),
        feed_forward=qwen_mixture(_OMNI, 128, 8, 768, normalize=True),
        varies=(SparseStep(_OMNI.feed_forward()),),
    ),
    ignored=(
        "sliding_window",
        "use_sliding_window",
        "max_window_layers",
        "shared_expert_intermediate_size",
        *TRAINING,
    ),
)

FAMILIES = (
    _alone(QWEN2_VL, "Qwen2VLForConditionalGeneration", "Qwen2VLTextModel"),
    _alone(QWEN2_VL, "Qwen2_5_VLForConditionalGeneration", "Qwen2_5_VLTextModel", "qwen2_5_vl_text"),
    _alone(
        QWEN2_VL,
        "Qwen2_5OmniThinkerForConditionalGeneration",
        "Qwen2_5OmniThinkerTextModel",
        "qwen2_5_omni_text",
    ),
    _alone(QWEN3_VL, "Qwen3VLForConditionalGeneration", "Qwen3VLTextModel"),
    _alone(QWEN3_VL_MOE, "Qwen3VLMoeForConditionalGeneration", "Qwen3VLMoeTextModel"),
    _alone(PADDLE, "PaddleOCRVLForConditionalGeneration", "PaddleOCRTextModel"),
    _alone(_glm("glm4v_text", _GLM4V, bias=True), "Glm4vForConditionalGeneration", "Glm4vTextModel"),
    _alone(GLM4V_MOE, "Glm4vMoeForConditionalGeneration", "Glm4vMoeTextModel"),
    _alone(OMNI_MOE, "Qwen3OmniMoeThinkerForConditionalGeneration", "Qwen3OmniMoeThinkerTextModel"),
    _alone(_glm("glm_ocr_text", _GLM_OCR, bias=False), "GlmOcrForConditionalGeneration", "GlmOcrTextModel"),
)
