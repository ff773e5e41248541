"""CLIP and its encoders against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from transformers import (
    CLIPConfig,
    CLIPModel,
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    CLIPVisionConfig,
    CLIPVisionModel,
    CLIPVisionModelWithProjection,
)

from specs.language.load import load as load_spec
from tests.parity.families import pairs
from tests.parity.families.encoder_tests import ACTIVATIONS, EPS, EncoderTests
from tests.parity.families.harness import check
from tests.parity.reference import assert_close, build, load
from tests.thinned import one_in
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config, ConfigError

CONFIGS: dict[str, dict[str, Any]] = {
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


def config_of(**values) -> CLIPTextConfig:
    return CLIPTextConfig(**values, bos_token_id=1, pad_token_id=0)


VISION: dict[str, dict[str, Any]] = {
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


@one_in(2)
@pytest.mark.parametrize("model_class", [CLIPVisionModel, CLIPVisionModelWithProjection])
@pytest.mark.parametrize("name", VISION)
def test_encoder_of_images(name, model_class, tmp_path):
    check(model_class, CLIPVisionConfig(**VISION[name]), tmp_path, sides=("right",))


@one_in(2)
@pytest.mark.parametrize("name", CONFIGS)
def test_whole(name, tmp_path):
    text = config_of(**CONFIGS[name]).to_dict()
    vision = VISION[dict(zip(CONFIGS, VISION, strict=True))[name]]
    pairs.check(CLIPModel, CLIPConfig(text_config=text, vision_config=vision, projection_dim=11), tmp_path)


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("text_config", {"eos_token_id": 61}, "text_config.eos_token_id: must be below vocab_size"),
        ("vision_config", {"hidden_act": "gellu"}, "vision_config.hidden_act: is not supported"),
        ("vision_config", {"num_register_tokens": 4}, "vision_config.num_register_tokens"),
    ],
)
def test_unsupported_values_of_a_half_are_refused(field, change, message):
    text = config_of(**CONFIGS["odd heads"]).to_dict()
    data = CLIPConfig(text_config=text, vision_config=VISION["gray"], projection_dim=11).to_dict()
    data |= {"architectures": ["CLIPModel"], field: data[field] | change}
    with pytest.raises(ConfigError, match=message):
        spec_of_config(Config(data, "config.json"), name="tiny", strict=True)


@pytest.mark.parametrize(
    ("end", "ids", "expected"),
    [
        (
            2,
            [[5, 60, 9, 60], [7, 7, 2, 1]],
            [1, 0],
        ),  # the highest id of each row, though there are higher ones
        (50, [[5, 60, 50, 50], [7, 50, 2, 1]], [2, 1]),
        (50, [[5, 60, 9, 60], [7, 7, 2, 1]], [0, 0]),  # texts without an end
    ],
)
def test_texts_are_pooled_where_the_reference_pools_them(end, ids, expected, tmp_path):
    values = {**CONFIGS["odd heads"], "vocab_size": 70, "eos_token_id": end}
    reference = build(CLIPTextModel, config_of(**values), 4)
    reference.save_pretrained(tmp_path)
    ours, given = load(import_spec(tmp_path), tmp_path), torch.tensor(ids)
    with torch.no_grad():
        theirs, found = reference(given), ours(given)
    rows = theirs.last_hidden_state[torch.arange(2), torch.tensor(expected)]
    assert_close(theirs.pooler_output, rows)
    assert_close(found.pooler_output, rows)


def test_a_dual_encoder_is_no_text_encoder_of_its_own():
    spec = load_spec("clip-vit-b32")
    assert write_config(spec)["architectures"] == ["CLIPModel"]
    with pytest.raises(NoFamilyError, match="no class with head contrastive"):
        write_config(spec, "clip_text_model")
    with pytest.raises(NoFamilyError, match="no class with head pooled"):
        write_config(load_spec("clip-vit-b32-text"), "clip")


class TestClip(EncoderTests):
    model_class = CLIPTextModelWithProjection
    config = staticmethod(config_of)
    configs = CONFIGS
    check = staticmethod(check)
    others = [(CLIPTextModel, values) for values in CONFIGS.values()]
    refusals = (
        ("hidden_act", "quick_gleu", "Did you mean 'quick_gelu'"),
        ("architectures", ["CLIPVisionModel"], "Choose from: CLIPTextModel, CLIPTextModelWithProjection"),
        ("eos_token_id", 61, "must be below vocab_size, which is 61"),
        ("attention_type", "flash", "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads, vocab_size = data.draw(st.integers(1, 7), "heads"), data.draw(st.integers(5, 90), "vocab_size")
        return dict(
            vocab_size=vocab_size,
            hidden_size=heads * data.draw(st.integers(3, 9), "head_dim"),
            num_hidden_layers=data.draw(st.integers(1, 4), "layers"),
            num_attention_heads=heads,
            intermediate_size=data.draw(st.integers(1, 70), "hidden"),
            hidden_act=data.draw(ACTIVATIONS | st.just("quick_gelu"), "activation"),
            layer_norm_eps=data.draw(EPS, "eps"),
            max_position_embeddings=data.draw(st.integers(1, 40), "context_length"),
            projection_dim=data.draw(st.integers(1, 30), "projection"),
            eos_token_id=data.draw(st.integers(2, vocab_size - 1), "end"),
        )
