"""LLaVA 1.5 (Liu et al., 2023): ``LlavaForConditionalGeneration``, the images of CLIP or SigLIP among the tokens of Llama, Mistral
or Qwen2."""

from __future__ import annotations

from specs.kinds.connector import MlpConnector
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.template import Data, UnfitError, read
from zoo.families.common.tensors import affine
from zoo.families.common.vision_language import (
    TEXT_CONFIG,
    TIED,
    VISION_CONFIG,
    decoder_rules,
    image_rules,
    images_of,
    joined,
    layers_seen,
    reader_config,
    reader_tensors,
)
from zoo.families.vision.clip import VISION as CLIP
from zoo.families.vision.siglip import VISION as SIGLIP
from zoo.families.vision_language.text_configs import decoder_config, decoder_spec

_IMAGES = {
    "clip_vision_model": (CLIP, "CLIPVisionModel"),
    "siglip_vision_model": (SIGLIP, "SiglipVisionModel"),
}
_STRATEGY = "vision_feature_select_strategy"
_CONNECTOR = {
    "token": f.Int("image_token_index", "image_token_id", default=32000),
    "activation": f.Activation("projector_hidden_act", "gelu"),
    "bias": f.Bool("multimodal_projector_bias", default=True),
}


class _Llava(Family):
    """An image encoder and a decoder, each with the config of its own family."""

    def spec(self, config: Config, class_name: str) -> Data:
        seen = config.model(VISION_CONFIG, _IMAGES, ("vocab_size", "vision_use_head"))
        images, class_of_images = _IMAGES[seen.data["model_type"]]
        body, decoder = images.body_spec(seen, class_of_images), decoder_spec(config)
        tied = config.bool(TIED, default=False) or bool(config.data[TEXT_CONFIG].get(TIED))
        layers = layers_seen(config, body["encoder"]["layers"], default=-2)
        connector = {"kind": "mlp", **read(_CONNECTOR, config), **self._kept(config, body["embedding"])}
        config.ignore("image_seq_length")
        return joined(decoder, body, connector, tied=tied, layers=layers, final_norm=False)

    def _kept(self, config: Config, embedding: Data) -> Data:
        """Whether the class token's vector is kept."""
        whole = config.choice(_STRATEGY, {"default": False, "full": True}, default="default")
        classed = embedding.get("class_token", True)
        if not whole and not classed:
            config.refuse(_STRATEGY, "must be full, as the images have no class token to leave out")
        return {"class_token": True} if whole and classed else {}

    def config(self, model: Model, class_name: str) -> Data:
        seen, connector = images_of(model), model.connector
        assert model.image is not None
        if not isinstance(connector, MlpConnector) or connector.hidden not in (None, model.output_width):
            raise UnfitError("connector of other layers than two as wide as the decoder")
        if connector.shuffle > 1 or (connector.norm, connector.joined_norm) != (None, None):
            raise UnfitError("connector with pixel shuffle or a norm")
        if model.image.ends_with_norm:
            raise UnfitError("image.final_norm")
        classed = bool(getattr(seen.embedding, "class_token", False))
        images, class_of_images = _IMAGES["clip_vision_model" if classed else "siglip_vision_model"]
        if not classed:
            stack = seen.last_stack.model_copy(update={"final_norm": None})
            seen = seen.model_copy(update={"encoder": stack})
        return reader_config(
            self,
            class_name,
            model,
            images=images.body_config(seen, class_of_images),
            connector=_CONNECTOR,
            text=decoder_config(model),
            vision_feature_layer=-1,
            vision_feature_select_strategy="full" if connector.class_token or not classed else "default",
            image_seq_length=model.vectors_per_image,
        )


_OF_IMAGES = tuple(
    rule
    for rule in image_rules(
        (*CLIP.tensors.rules, *SIGLIP.tensors.rules), "vision_tower.", also="vision_tower.vision_model."
    )
    if "final_norm" not in rule.parameters[0]
)

FAMILIES = (
    _Llava(
        "llava",
        reader_tensors(
            "llava",
            *_OF_IMAGES,
            *affine("multi_modal_projector.linear_1", "connector.up"),
            *affine("multi_modal_projector.linear_2", "connector.down"),
            *decoder_rules("language_model.model."),
            optional=("*vision_tower.*",),
            unused=("*.embeddings.position_ids",),
        ),
        classes={"LlavaForConditionalGeneration": HeadClass("language_modeling")},
    ),
)
