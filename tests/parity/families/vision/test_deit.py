"""DeiT with a distillation token against transformers."""

from __future__ import annotations

import transformers as hf

from specs.language.load import load
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.vision import test_vit
from zoo.configs.exporting import write_config


class TestDeiT(RightPaddedTests):
    model_class = hf.DeiTForImageClassificationWithTeacher
    defaults = {"num_labels": 5}
    configs = test_vit.TestViT.configs
    heads = ("Model", "ForImageClassification")
    of_others = tuple(configs)
    refusals = (
        ("image_size", [32, 24], "must be a whole number", "square"),
        ("pooler_output_size", 9, "must be 21", "keeps the width"),
        ("architectures", ["DeiTForMaskedImageModeling"], "must name a supported class", "DeiTForImageClassification"),
    )  # fmt: skip
    draw = staticmethod(test_vit.TestViT.draw)


def test_a_distillation_token_makes_a_vit_a_deit():
    assert write_config(load("deit-tiny-16"))["model_type"] == "vit"
    assert write_config(load("deit-tiny-distilled-16"))["model_type"] == "deit"
