"""BLIP's captions of images against transformers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import BlipConfig

from exporters.export import export
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from exporters.steps.options import ExportOptions
from specs.forms.canonical import canonical
from specs.language.load import load as load_spec
from tests.parity.families import harness
from tests.parity.reference import ACTIVATIONS, build
from tests.thinned import one_in
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config, ConfigError

IMAGES: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, image_size=14, patch_size=4,
    layer_norm_eps=1e-3,
)  # fmt: skip
WORDS: dict[str, Any] = dict(
    vocab_size=61, hidden_size=20, num_hidden_layers=3, num_attention_heads=5, intermediate_size=33,
    max_position_embeddings=16, layer_norm_eps=1e-4, bos_token_id=1, eos_token_id=2, sep_token_id=3,
)  # fmt: skip
CONFIGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "another width": (IMAGES, WORDS),
    "one width": (
        {**IMAGES, "hidden_act": "gelu_new", "image_size": 9},
        {**WORDS, "hidden_size": 24, "num_attention_heads": 2, "hidden_act": "relu"},
    ),
}

PUBLISHED: dict[str, Any] = {
    "architectures": ["BlipForConditionalGeneration"],
    "image_text_hidden_size": 256,
    "initializer_factor": 1.0,
    "logit_scale_init_value": 2.6592,
    "model_type": "blip",
    "projection_dim": 512,
    "text_config": {
        "bos_token_id": 30522, "encoder_hidden_size": 768, "eos_token_id": 2, "hidden_act": "gelu", "hidden_size": 768,
        "is_decoder": True, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "blip_text_model",
        "num_attention_heads": 12, "num_hidden_layers": 12, "projection_dim": 768, "sep_token_id": 102, "vocab_size": 30524,
    },
    "vision_config": {
        "dropout": 0.0, "initializer_factor": 1.0, "hidden_size": 768, "image_size": 384, "model_type": "blip_vision_model", "num_attention_heads": 12,
        "num_channels": 3, "num_hidden_layers": 12, "patch_size": 16, "projection_dim": 512,
    },
}  # fmt: skip


class BlipForConditionalGeneration(transformers.BlipForConditionalGeneration):
    """The reference, whose inputs have the names of other encoder-decoders."""

    def forward(self, pixel_values: Tensor, decoder_input_ids: Tensor) -> Any:
        return super().forward(pixel_values, decoder_input_ids)


def config_of(images: dict[str, Any], words: dict[str, Any]) -> BlipConfig:
    return BlipConfig(vision_config=images, text_config={"hidden_size": 24, **words})


check = partial(harness.check, BlipForConditionalGeneration, sides=("right",))


@one_in(2)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(config_of(*CONFIGS[name]), tmp_path)


@pytest.mark.slow
def test_captions_are_those_of_the_reference(tmp_path):
    """From the start token of the reference, which its config has for texts."""
    config = config_of(IMAGES, {**WORDS, "sep_token_id": 60})
    reference = build(transformers.BlipForConditionalGeneration, config, 3)
    reference.save_pretrained(tmp_path / "reference")
    options = ExportOptions(weights=str(tmp_path / "reference"))
    export(import_spec(tmp_path / "reference"), tmp_path / "x", options)
    images = torch.randn((2, 3, 14, 14), generator=torch.Generator().manual_seed(2))
    expected = reference.generate(images, do_sample=False, max_new_tokens=8)[:, 1:].tolist()
    found = Generator(open_export(tmp_path / "x")).generate(images.numpy(), 8, start=1)
    assert [each.ids for each in found.continuations] == expected


def test_the_published_config_is_the_preset():
    spec = spec_of_config(Config(PUBLISHED, "config.json"), name="blip")
    assert canonical(spec) == canonical(load_spec("blip-captioning-base"))


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        ("text_config", {"is_decoder": False}, "text_config.is_decoder: must be true"),
        ("text_config", {"hidden_act": "gellu"}, "text_config.hidden_act: is not supported"),
        (None, {"tie_word_embeddings": False}, "tie_word_embeddings: must be true"),
        (
            None,
            {"architectures": ["BlipForQuestionAnswering"]},
            "Choose from: BlipForConditionalGeneration",
        ),
    ],
)
def test_unsupported_values_are_refused(place, change, message):
    data = {**PUBLISHED, **(change if place is None else {place: PUBLISHED[place] | change})}
    with pytest.raises(ConfigError, match=message):
        spec_of_config(Config(data, "config.json"), name="tiny", strict=True)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    images = {
        **IMAGES,
        "hidden_size": 3 * data.draw(st.integers(2, 8), "width of an image's head"),
        "hidden_act": data.draw(st.sampled_from(list(ACTIVATIONS)), "activation"),
        "num_hidden_layers": data.draw(st.integers(1, 3), "layers of the encoder"),
    }
    heads = data.draw(st.integers(1, 4), "heads")
    words = {
        **WORDS,
        "vocab_size": data.draw(st.integers(5, 90), "vocab_size"),
        "hidden_size": heads * data.draw(st.integers(2, 9), "width of a head"),
        "num_attention_heads": heads,
        "num_hidden_layers": data.draw(st.integers(1, 3), "layers"),
        "intermediate_size": data.draw(st.integers(1, 50), "hidden"),
        "max_position_embeddings": data.draw(st.integers(4, 20), "positions"),
    }
    directory, seed = tmp_path_factory.mktemp("drawn"), data.draw(st.integers(0, 99), "seed")
    check(config_of(images, words), directory, seed=seed, onnx=seed % 5 == 0, fuzzed=True)
