"""LiLT against transformers."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st

from specs.language.load import load
from tests.parity.families.draws import ACTIVATION, HIDDEN, LAYERS, VOCAB, drawn
from tests.parity.families.encoder_tests import EPS, EncoderTests
from tests.parity.families.llamas import ALL
from zoo.configs.exporting import write_config

TINY = dict(
    vocab_size=61, hidden_size=24, num_hidden_layers=3, num_attention_heads=2, intermediate_size=18,
    hidden_act="gelu", layer_norm_eps=1e-3, type_vocab_size=1, max_position_embeddings=23, pad_token_id=1,
    channel_shrink_ratio=3, max_2d_position_embeddings=30,
)  # fmt: skip


class TestLilt(EncoderTests):
    model_class = hf.LiltModel
    options: ClassVar[Any] = {"position_ids": False}
    configs: ClassVar[Any] = {
        "narrow": TINY,
        "as wide": {
            **TINY, "num_attention_heads": 4, "channel_shrink_ratio": 1, "pad_token_id": 0, "type_vocab_size": 2,
        },
    }  # fmt: skip
    heads = ALL
    refusals: ClassVar[Any] = (
        ("channel_shrink_ratio", 5, "must divide the width of a head, which is 12"),
        (
            {"hidden_size": 27, "num_attention_heads": 1},
            "requires a d_model that the six vectors of a box divide",
        ),
    )

    @staticmethod
    def draw(data):
        heads, ratio = data.draw(st.integers(1, 5), "heads"), data.draw(st.integers(1, 4), "ratio")
        fields = dict(
            vocab_size=VOCAB, hidden_size=6 * ratio * heads * data.draw(st.integers(1, 3), "sixths"), num_hidden_layers=LAYERS,
            num_attention_heads=heads, intermediate_size=HIDDEN.map(lambda hidden: max(hidden, ratio)), hidden_act=ACTIVATION,
            layer_norm_eps=EPS, type_vocab_size=st.integers(1, 4), pad_token_id=st.integers(0, 2),
            max_position_embeddings=st.integers(4, 40), channel_shrink_ratio=ratio,
            max_2d_position_embeddings=st.integers(1, 50),
        )  # fmt: skip
        return drawn(data, fields)


@pytest.mark.parametrize(
    ("preset", "model_class"),
    [
        ("lilt-roberta-en-base", hf.LiltModel),
        ("bros-base-uncased", hf.BrosModel),
        ("eomt-large-coco-panoptic-640", hf.EomtForUniversalSegmentation),
    ],
)
def test_presets_have_as_many_parameters_as_the_class(preset: str, model_class: Any) -> None:
    spec = load(preset)
    with torch.device("meta"):
        reference = model_class(model_class.config_class.from_dict(write_config(spec)))
    assert sum(parameter.numel() for parameter in reference.parameters()) == spec.expect.parameters
