"""MetaCLIP 2 and its encoders against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.family import RightPaddedTests
from tests.parity.families.pairs import PairTests
from tests.parity.families.vision import test_clip as clip

TEXTS = {name: config for name, config in clip.CONFIGS.items() if name != "old end"}
TEXTS["end of the released models"] = clip.CONFIGS["old end"]


class TestMetaClip2Text(RightPaddedTests):
    model_class = hf.MetaClip2TextModelWithProjection
    defaults = clip.TestClipText.defaults
    configs = TEXTS
    heads = ("Model",)
    options = {}
    refusals = (("eos_token_id", 61, "must be below vocab_size, which is 61"),)
    draw = staticmethod(clip.TestClipText.draw)


class TestMetaClip2Vision(RightPaddedTests):
    model_class = hf.MetaClip2VisionModelWithProjection
    configs = clip.VISION
    heads = ("Model",)


class TestMetaClip2(PairTests):
    model_class = hf.MetaClip2Model
    defaults = {"projection_dim": 11}
    configs = {
        name: {"text_config": {**TestMetaClip2Text.defaults, **text}, "vision_config": vision}
        for (name, text), vision in zip(TEXTS.items(), clip.VISION.values(), strict=True)
    }
    preset = "clip-vit-b32"
    no_field = (("text.head.pooling={token: highest}", "head.pooling.token highest"),)
