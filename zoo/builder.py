"""From a spec to a module."""

from __future__ import annotations

import torch

from specs.model.model import Model
from zoo.models.decoder import Decoder
from zoo.models.dual_encoder import DualEncoder
from zoo.models.encoder import Encoder
from zoo.models.encoder_decoder import EncoderDecoder
from zoo.models.next_token_decoder import NextTokenDecoder
from zoo.models.vision_language import VisionLanguage
from zoo.weights.ties import hold_ties_once

ZooModel = Encoder | Decoder | EncoderDecoder | DualEncoder

_ARCHITECTURES: dict[str, type[ZooModel]] = {
    "encoder": Encoder,
    "decoder": Decoder,
    "encoder-decoder": EncoderDecoder,
    "dual-encoder": DualEncoder,
    "vision-language": VisionLanguage,
}


def assemble(spec: Model, dtype: torch.dtype = torch.float32) -> ZooModel:
    """The module of a spec on the meta device: it has shapes but no weights.

    Raises :class:`specs.base.errors.PluginError` where a plugin's kind cannot be built.
    """
    with torch.device("meta"):
        model = _class_of(spec)(spec)
    hold_ties_once(model)
    # transformers hides torch.linspace from the device of a context if it uses the first one: see the test.
    return model.to("meta", dtype).eval()


def _class_of(spec: Model) -> type[ZooModel]:
    if spec.reads_hidden_states:
        return NextTokenDecoder
    return _ARCHITECTURES[spec.architecture]
