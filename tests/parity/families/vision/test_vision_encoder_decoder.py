"""VisionEncoderDecoderModel against transformers: ViT with TrOCR's decoder, or with GPT-2."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    GPT2Config,
    TrOCRConfig,
    VisionEncoderDecoderConfig,
    VisionEncoderDecoderModel,
    ViTConfig,
)
from transformers.models.trocr.modeling_trocr import TrOCRSinusoidalPositionalEmbedding

from tests.parity.families import harness
from tests.parity.reference import ACTIVATIONS
from tests.thinned import one_in
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

SPECIAL = dict(pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
IMAGES: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, image_size=14, patch_size=4,
    num_channels=3, layer_norm_eps=1e-3,
)  # fmt: skip
TROCR: dict[str, Any] = dict(
    vocab_size=61, d_model=20, decoder_layers=3, decoder_attention_heads=5, decoder_ffn_dim=33,
    max_position_embeddings=16, cross_attention_hidden_size=24,
)  # fmt: skip
GPT2: dict[str, Any] = dict(vocab_size=47, n_embd=24, n_layer=2, n_head=4, n_positions=18, n_inner=31)
CONFIGS: dict[str, tuple[dict[str, Any], type, dict[str, Any]]] = {
    "another width": (IMAGES, TrOCRConfig, TROCR),
    "sinusoids": (
        {**IMAGES, "qkv_bias": False},
        TrOCRConfig,
        {**TROCR, "d_model": 24, "decoder_attention_heads": 2, "cross_attention_hidden_size": None,
         "use_learned_position_embeddings": False, "scale_embedding": True, "layernorm_embedding": False,
         "activation_function": "relu"},
    ),
    "GPT-2": ({**IMAGES, "num_channels": 1, "hidden_act": "gelu_new"}, GPT2Config, GPT2),
}  # fmt: skip


def config_of(images: dict[str, Any], words: type, values: dict[str, Any]) -> VisionEncoderDecoderConfig:
    decoder = words(**values, **SPECIAL, is_decoder=True, add_cross_attention=True)
    return VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        ViTConfig(**images), decoder, pad_token_id=1, decoder_start_token_id=2
    )


@pytest.fixture(autouse=True, scope="module")
def sinusoids_are_computed_again() -> Iterator[None]:
    """Those of a reference that was loaded are on the meta device, as they are neither a parameter nor a buffer."""
    forward = TrOCRSinusoidalPositionalEmbedding.forward

    def forward_with_sinusoids(self: Any, *inputs: Any, **more: Any) -> Any:
        if self.weights is not None and self.weights.is_meta:
            self.weights = None
        return forward(self, *inputs, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrOCRSinusoidalPositionalEmbedding, "forward", forward_with_sinusoids)
        yield


check = partial(harness.check, sides=("right",), without=("encoder.pooler.",))


@one_in(2)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(VisionEncoderDecoderModel, config_of(*CONFIGS[name]), tmp_path)


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("decoder", {"model_type": "bert"}, "decoder.model_type: is not a supported family here", "trocr"),
    ("decoder", {"cross_attention_hidden_size": None}, "cross_attention_hidden_size: must be 24, the width of the encoder",
     "map the encoder's output"),
    ("decoder", {"activation_function": "gellu"}, "decoder.activation_function: is not supported", "gelu"),
    ("decoder", {"scale_heads": True}, "unsupported fields", "decoder.scale_heads"),
    ("encoder", {"is_decoder": True}, "encoder.is_decoder: must be false", "it is the encoder"),
    ("encoder", {"model_type": None}, "encoder.model_type: is required", "vit"),
    ("encoder", {"num_register_tokens": 4}, "unsupported fields", "encoder.num_register_tokens"),
]  # fmt: skip


@pytest.mark.parametrize(("side", "change", "rule", "remedy"), REFUSED, ids=[f"{side} {next(iter(change))}" for side, change, *_ in REFUSED])  # fmt: skip
def test_unsupported_values_and_fields_are_refused(side, change, rule, remedy):
    data = config_of(*CONFIGS["another width"]).to_dict()
    data[side] |= change
    with pytest.raises(ConfigError, match=rule) as caught:
        spec_of_config(Config(data, "config.json"), name="tiny", strict=True)
    assert remedy in str(caught.value)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    images = {
        **IMAGES,
        "hidden_size": 3 * data.draw(st.integers(2, 8), "width of an image's head"),
        "hidden_act": data.draw(st.sampled_from(list(ACTIVATIONS)), "activation"),
        "num_hidden_layers": data.draw(st.integers(1, 3), "layers of the encoder"),
        "qkv_bias": data.draw(st.booleans(), "bias"),
    }
    if data.draw(st.booleans(), "TrOCR"):
        learned = data.draw(st.booleans(), "learned")
        width = 2 * data.draw(st.integers(2, 8), "half the width of a head")
        heads = data.draw(st.integers(1, 4), "heads")
        values = dict(
            vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
            d_model=heads * width,
            decoder_layers=data.draw(st.integers(1, 3), "layers"),
            decoder_attention_heads=heads,
            decoder_ffn_dim=data.draw(st.integers(1, 50), "hidden"),
            max_position_embeddings=data.draw(st.integers(4, 20), "positions"),
            use_learned_position_embeddings=learned,
            scale_embedding=data.draw(st.booleans(), "scaled"),
            layernorm_embedding=data.draw(st.booleans(), "norm"),
            cross_attention_hidden_size=images["hidden_size"],
        )
        config = config_of(images, TrOCRConfig, values)
    else:
        values = dict(
            vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
            n_embd=images["hidden_size"],
            n_layer=data.draw(st.integers(1, 3), "layers"),
            n_head=data.draw(st.sampled_from([1, 3]), "heads"),
            n_positions=data.draw(st.integers(4, 20), "positions"),
        )
        config = config_of(images, GPT2Config, values)
    directory, seed = tmp_path_factory.mktemp("drawn"), data.draw(st.integers(0, 99), "seed")
    check(
        VisionEncoderDecoderModel,
        config,
        directory,
        seed=seed,
        sides=("right",),
        onnx=seed % 5 == 0,
        fuzzed=True,
    )
