"""NeoBERT against its paper."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from specs.model.model import Model
from tests.parity.families.draws import LAYERS, VOCAB
from tests.parity.families.encoder_tests import EncoderTests
from tests.parity.families.neobert import (
    NeoBERT,
    NeoBERTForSequenceClassification,
    NeoBERTLMHead,
)
from tests.zoo.configs.published_encoders import ENCODERS
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config


def imported(**fields: Any) -> Model:
    return spec_of_config(Config({**ENCODERS["neobert"], **fields}, "config.json"), name="neobert")


def test_the_published_config() -> None:
    spec: Any = imported()
    block = spec.encoder.block
    assert (spec.context_length, block.feed_forward.hidden, spec.encoder.layers) == (4096, 2048, 28)
    assert write_config(spec, "neobert")["intermediate_size"] == 3072


@pytest.mark.parametrize(
    ("stated", "hidden"), [(1, 8), (12, 8), (13, 8), (14, 16), (3072, 2048), (3073, 2048)]
)
def test_the_width_of_feed_forwards_is_a_multiple_of_8(stated: int, hidden: int) -> None:
    assert imported(intermediate_size=stated).encoder.block.feed_forward.hidden == hidden


def test_other_widths_are_not_converted() -> None:
    spec = imported().model_dump()
    spec["encoder"]["block"]["feed_forward"]["hidden"] = 2047
    with pytest.raises(NoFamilyError, match="hidden 2047: it has multiples of 8"):
        write_config(Model.model_validate(spec), "neobert")


class TestNeoBERT(EncoderTests):
    model_class = NeoBERTLMHead
    configs = {
        "three heads": dict(
            vocab_size=61, hidden_size=30, num_hidden_layers=3, num_attention_heads=3, intermediate_size=36,
            norm_eps=1e-3, max_length=40,
        ),
        "wide": dict(
            vocab_size=44, hidden_size=24, num_hidden_layers=1, num_attention_heads=2, intermediate_size=60, max_length=32,
        ),
    }  # fmt: skip
    heads = ()
    others = ((NeoBERT, {}), (NeoBERTForSequenceClassification, {"num_labels": 5}))
    refusals = (
        ("hidden_act", "gelu", 'must be "SwiGLU"'),
        ("rms_norm", False, "must be true"),
        ("rope", False, "must be true"),
        ("ngpt", True, "must be false: models on the unit sphere"),
        ("dim_head", 7, "must be 10"),
        ("intermediate_size", 0, "must be at least 1"),
    )

    @staticmethod
    def draw(data: st.DataObject) -> dict[str, Any]:
        heads = data.draw(st.integers(1, 5), "heads")
        return dict(
            vocab_size=VOCAB, hidden_size=heads * 2 * data.draw(st.integers(1, 6), "pairs"), num_hidden_layers=LAYERS,
            num_attention_heads=heads, intermediate_size=12 * data.draw(st.integers(1, 6), "hidden"),
            norm_eps=st.sampled_from([1e-6, 1e-2]), max_length=st.integers(16, 64),
        )  # fmt: skip
