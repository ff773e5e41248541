"""VisionEncoderDecoderModel against transformers: ViT with TrOCR's decoder, or with GPT-2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import transformers as hf
from hypothesis import strategies as st
from transformers.models.trocr.modeling_trocr import TrOCRSinusoidalPositionalEmbedding

from tests.parity.families.draws import FEW_LAYERS, FLAG, VOCAB, flags
from tests.parity.families.family import FamilyTests
from tests.parity.families.vision_tests import ACTIVATION

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


class TestVisionEncoderDecoder(FamilyTests):
    model_class = hf.VisionEncoderDecoderModel
    configs = {
        "another width": dict(encoder=IMAGES, decoder=TROCR),
        "sinusoids": dict(
            encoder={**IMAGES, "qkv_bias": False},
            decoder={
                **TROCR, "d_model": 24, "decoder_attention_heads": 2, "cross_attention_hidden_size": None,
                "use_learned_position_embeddings": False, "scale_embedding": True, "layernorm_embedding": False,
                "activation_function": "relu",
            },
        ),
        "GPT-2": dict(encoder={**IMAGES, "num_channels": 1, "hidden_act": "gelu_new"}, decoder=GPT2),
    }  # fmt: skip
    options = {"sides": ("right",), "without": ("encoder.pooler.",)}
    refusals = (
        ("decoder.model_type", "bert", "is not a supported family here", "trocr"),
        ("decoder.cross_attention_hidden_size", None, "must be 24, the width of the encoder", "map the encoder's output"),
        ("decoder.activation_function", "gellu", "is not supported", "gelu"),
        ("decoder.scale_heads", True, "unsupported fields"),
        ("encoder.is_decoder", True, "must be false", "it is the encoder"),
        ("encoder.model_type", None, "is required", "vit"),
        ("encoder.num_register_tokens", 4, "unsupported fields"),
    )  # fmt: skip

    @classmethod
    def config(cls, **values):
        encoder, decoder = values["encoder"], values["decoder"]
        config_class = hf.GPT2Config if "n_embd" in decoder else hf.TrOCRConfig
        words = config_class(**decoder, **SPECIAL, is_decoder=True, add_cross_attention=True)
        return hf.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
            hf.ViTConfig(**encoder), words, pad_token_id=1, decoder_start_token_id=2
        )

    @staticmethod
    def draw(data):
        width = 3 * data.draw(st.integers(2, 8), "width of an image's head")
        encoder = {
            **IMAGES, "hidden_size": width, "hidden_act": ACTIVATION, "num_hidden_layers": FEW_LAYERS, "qkv_bias": FLAG,
        }  # fmt: skip
        heads = data.draw(st.integers(1, 4), "heads")
        decoder = dict(
            vocab_size=VOCAB, d_model=heads * 2 * data.draw(st.integers(2, 8), "half the width of a head"),
            decoder_layers=FEW_LAYERS, decoder_attention_heads=heads, decoder_ffn_dim=st.integers(1, 50),
            max_position_embeddings=st.integers(4, 20), cross_attention_hidden_size=width,
            **flags("use_learned_position_embeddings", "scale_embedding", "layernorm_embedding"),
        )  # fmt: skip
        if not data.draw(FLAG, "TrOCR"):
            decoder = dict(
                vocab_size=VOCAB, n_embd=width, n_layer=FEW_LAYERS, n_head=st.sampled_from([1, 3]),
                n_positions=st.integers(4, 20),
            )  # fmt: skip
        return dict(encoder=encoder, decoder=decoder)
