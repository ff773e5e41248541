"""CLIP and its encoders against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st

from specs.language.load import load as load_spec
from tests.parity.families.draws import ACTIVATION, HIDDEN, LAYERS, VOCAB
from tests.parity.families.encoder_tests import EPS
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.pairs import PairTests
from tests.parity.reference import assert_close, build, load
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import import_spec

CONFIGS: dict[str, Any] = {
    "odd heads": dict(
        vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
        projection_dim=9, layer_norm_eps=1e-3, max_position_embeddings=23, eos_token_id=60,
    ),
    "end among the others": dict(
        vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
        projection_dim=50, hidden_act="gelu", layer_norm_eps=1e-6, max_position_embeddings=19, eos_token_id=7,
    ),
    "old end": dict(
        vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
        projection_dim=28, hidden_act="relu", max_position_embeddings=31, eos_token_id=2,
    ),
}  # fmt: skip
VISION: dict[str, Any] = {
    "odd heads": dict(
        hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17, image_size=14, patch_size=4,
        layer_norm_eps=1e-3, projection_dim=9,
    ),
    "gray": dict(
        hidden_size=20, num_hidden_layers=1, num_attention_heads=5, intermediate_size=40, image_size=16, patch_size=8,
        num_channels=1, hidden_act="gelu", projection_dim=20,
    ),
    "one patch": dict(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=9, image_size=8, patch_size=8,
        hidden_act="relu", projection_dim=7,
    ),
}  # fmt: skip


class TestClipText(RightPaddedTests):
    model_class = hf.CLIPTextModelWithProjection
    defaults = {"bos_token_id": 1, "pad_token_id": 0}
    configs = CONFIGS
    heads = ("Model",)
    of_others = tuple(configs)
    options = {}
    refusals = (
        ("hidden_act", "quick_gleu", "Did you mean 'quick_gelu'"),
        ("architectures", ["CLIPVisionModel"], "Choose from: CLIPTextModel, CLIPTextModelWithProjection"),
        ("eos_token_id", 61, "must be below vocab_size, which is 61"),
        ("attention_type", "flash", "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads, vocab_size = data.draw(st.integers(1, 7), "heads"), data.draw(VOCAB, "vocab_size")
        return dict(
            vocab_size=vocab_size, hidden_size=heads * data.draw(st.integers(3, 9), "head_dim"),
            num_hidden_layers=LAYERS, num_attention_heads=heads, intermediate_size=HIDDEN,
            hidden_act=ACTIVATION | st.just("quick_gelu"), layer_norm_eps=EPS, max_position_embeddings=st.integers(1, 40),
            projection_dim=st.integers(1, 30), eos_token_id=st.integers(2, vocab_size - 1),
        )  # fmt: skip


class TestClipVision(RightPaddedTests):
    model_class = hf.CLIPVisionModelWithProjection
    configs = VISION
    heads = ("Model",)
    of_others = tuple(configs)


class TestClip(PairTests):
    model_class = hf.CLIPModel
    defaults = {"projection_dim": 11}
    configs = {
        name: {"text_config": {**TestClipText.defaults, **text}, "vision_config": vision}
        for (name, text), vision in zip(CONFIGS.items(), VISION.values(), strict=True)
    }
    refusals = (
        ("text_config.eos_token_id", 61, "must be below vocab_size"),
        ("vision_config.hidden_act", "gellu", "is not supported"),
        ("vision_config.num_register_tokens", 4, "unsupported fields"),
    )


@pytest.mark.parametrize(
    ("end", "ids", "expected"),
    [
        (2, [[5, 60, 9, 60], [7, 7, 2, 1]], [1, 0]),  # the highest id of each row, though there are higher ones
        (50, [[5, 60, 50, 50], [7, 50, 2, 1]], [2, 1]),
        (50, [[5, 60, 9, 60], [7, 7, 2, 1]], [0, 0]),  # texts without an end
    ],
)  # fmt: skip
def test_texts_are_pooled_where_the_reference_pools_them(end, ids, expected, tmp_path):
    config = TestClipText.configured("odd heads", vocab_size=70, eos_token_id=end)
    reference = build(hf.CLIPTextModel, config, 4)
    reference.save_pretrained(tmp_path)
    ours, tokens = load(import_spec(tmp_path), tmp_path), torch.tensor(ids)
    with torch.no_grad():
        theirs, outputs = reference(tokens), ours(tokens)
    rows = theirs.last_hidden_state[torch.arange(2), torch.tensor(expected)]
    assert_close(theirs.pooler_output, rows)
    assert_close(outputs.pooler_output, rows)


def test_a_dual_encoder_is_no_text_encoder_of_its_own():
    spec = load_spec("clip-vit-b32")
    assert write_config(spec)["architectures"] == ["CLIPModel"]
    with pytest.raises(NoFamilyError, match="no class with head contrastive"):
        write_config(spec, "clip_text_model")
    with pytest.raises(NoFamilyError, match="no class with head pooled"):
        write_config(load_spec("clip-vit-b32-text"), "clip")
