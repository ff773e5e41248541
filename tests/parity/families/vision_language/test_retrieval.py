"""ColPali, ColQwen2 and ColModernVBERT against transformers."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.vision_language import test_modernvbert as modernvbert
from tests.parity.families.vision_language import test_paligemma as paligemma
from tests.parity.families.vision_language import test_qwen2_vl as qwen2_vl
from tests.parity.families.vision_language.test_gemma3_images import UNREAD
from tests.parity.families.vision_language_tests import VisionLanguageTests

WIDTHS = st.integers(2, 9)


def _inside(model_type: str, configs: Any) -> dict[str, Any]:
    """The configurations of a model that reads images, each inside another config."""
    return {
        name: {"vlm_config": {"model_type": model_type, **config}, "embedding_dim": 5 + index}
        for index, (name, config) in enumerate(configs.items())
    }


class TestColPali(VisionLanguageTests):
    model_class = hf.ColPaliForRetrieval
    configs = _inside("paligemma", paligemma.TestPaliGemma.configs)
    options = {"without": tuple(f"vlm.{name}" for name in UNREAD), "marked": True}
    refusals = (
        ("vlm_config.model_type", "llava", "is not a supported family here"),
        ("vlm_config.projection_dim", 20, "must be 24: images among tokens are as wide as these"),
        ("embedding_dim", "wide", "embedding_dim: must be a whole number"),
    )
    preset = "paligemma-3b-224"
    no_field = (
        ("head={kind: multi_vector, projection: 128}", "head: it is a normalized projection with a bias"),
        ("head={kind: multi_vector, projection: 128, projection_bias: true, normalize: false}", "head"),
    )

    @staticmethod
    def draw(data):
        return {
            "vlm_config": {"model_type": "paligemma", **paligemma.TestPaliGemma.draw(data)},
            "embedding_dim": WIDTHS,
        }


class TestColQwen2(VisionLanguageTests):
    model_class = hf.ColQwen2ForRetrieval
    configs = _inside("qwen2_vl", qwen2_vl.CONFIGS)
    drawn = {}
    refusals = (("vlm_config.model_type", "qwen2_5_vl", "is not a supported family here"),)
    preset = "qwen2-vl-2b"
    no_field = (
        (
            "head={kind: multi_vector, projection: 128, projection_bias: true}",
            "the tokens of images count as the others",
        ),
    )

    @staticmethod
    def draw(data):
        return {
            "vlm_config": {"model_type": "qwen2_vl", **qwen2_vl.TOKENS, **qwen2_vl.TestQwen2VL.draw(data)},
            "embedding_dim": WIDTHS,
        }


class TestColModernVBert(VisionLanguageTests):
    model_class = hf.ColModernVBertForRetrieval
    configs = _inside("modernvbert", modernvbert.CONFIGS)
    options = {"without": tuple(f"vlm.{name}" for name in modernvbert.UNREAD), "by_row": True}
    refusals = (("vlm_config.model_type", "paligemma", "is not a supported family here"),)

    @staticmethod
    def draw(data):
        return {
            "vlm_config": {"model_type": "modernvbert", **modernvbert.TestModernVBert.draw(data)},
            "embedding_dim": WIDTHS,
        }
