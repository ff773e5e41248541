"""The methods by which models are entered are known to FSDP under their names."""

from __future__ import annotations

from zoo.models.decoder import Decoder
from zoo.models.dual_encoder import DualEncoder
from zoo.models.encoder import Encoder
from zoo.models.encoder_decoder import EncoderDecoder
from zoo.models.vision_language import VisionLanguage
from zoo.parallel.parallelize import ENTRIES
from zoo.parallel.pipeline import StageModule


def test_every_entry_is_a_method_of_a_model() -> None:
    models = (Decoder, DualEncoder, Encoder, EncoderDecoder, StageModule, VisionLanguage)
    assert [name for name in ENTRIES if not any(hasattr(model, name) for model in models)] == []
