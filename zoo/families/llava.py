"""LLaVA 1.5 (Liu et al., 2023): ``LlavaForConditionalGeneration``, the images of CLIP or SigLIP among the tokens of Llama, Mistral
or Qwen2."""

from __future__ import annotations

from dataclasses import replace

from specs.attention import MultiHeadShape
from specs.connector import MlpConnector
from specs.head import NoHead
from specs.model import Model
from zoo.families.clip import VISION as CLIP
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.dual import rules_of_tower
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.llama_like import LLAMA
from zoo.families.common.parts import alone
from zoo.families.common.template import Data, Place, UnfitError, read, write
from zoo.families.common.tensors import Rule, Tensors, affine, same
from zoo.families.llama import FAMILIES as LLAMA_FAMILIES
from zoo.families.mistral import FAMILIES as MISTRAL_FAMILIES
from zoo.families.qwen2 import FAMILIES as QWEN2_FAMILIES
from zoo.families.siglip import VISION as SIGLIP

_IMAGES = {
    "clip_vision_model": (CLIP, "CLIPVisionModel"),
    "siglip_vision_model": (SIGLIP, "SiglipVisionModel"),
}
_WORDS = {
    "llama": (LLAMA_FAMILIES[0], "LlamaForCausalLM"),
    "mistral": (MISTRAL_FAMILIES[0], "MistralForCausalLM"),
    "qwen2": (QWEN2_FAMILIES[0], "Qwen2ForCausalLM"),
}
_TIED = "tie_word_embeddings"
_LAYER, _STRATEGY = "vision_feature_layer", "vision_feature_select_strategy"
_CONNECTOR = {
    "token": f.Int("image_token_index", "image_token_id", default=32000),
    "activation": f.Activation("projector_hidden_act", "gelu"),
    "bias": f.Bool("multimodal_projector_bias", default=True),
}


class _Llava(Family):
    """The config of an encoder of images and that of a decoder, each as its own family has it."""

    def spec(self, config: Config, class_name: str) -> Data:
        seen = config.model("vision_config", _IMAGES, ("vocab_size", "vision_use_head"))
        text = config.model("text_config", _WORDS, (_TIED,))
        tied = config.bool(_TIED, default=False) or config.data["text_config"].get(_TIED, False)
        images, class_of_images = _IMAGES[seen.data["model_type"]]
        words, class_of_words = _WORDS[text.data["model_type"]]
        body, said = images.body_spec(seen, class_of_images), words.spec(text, class_of_words)
        said["head"]["tie_embeddings"] = tied
        layers = self._layers(config, body["encoder"]["layers"])
        config.ignore("image_seq_length")
        own = {name: body[name] for name in ("d_model", "embedding", "position")}
        return {
            **said,
            "architecture": "vision-language",
            "image": {**body["encoder"], **own, "layers": layers, "final_norm": False},
            "connector": {"kind": "mlp", **read(_CONNECTOR, config), **self._kept(config, body["embedding"])},
        }

    def _layers(self, config: Config, depth: int) -> int:
        """The number of layers up to the one whose output is read."""
        layer = config.int(_LAYER, default=-2)
        if not -depth <= layer <= -1:
            config.refuse(_LAYER, f"must be from {-depth} to -1: layers are counted from the last")
        return depth + 1 + layer

    def _kept(self, config: Config, embedding: Data) -> Data:
        """Whether the vector of the class token is among those of an image."""
        whole = config.choice(_STRATEGY, {"default": False, "full": True}, default="default")
        classed = embedding.get("class_token", True)
        if not whole and not classed:
            config.refuse(_STRATEGY, "must be full, as the images have no class token to leave out")
        return {"class_token": True} if whole and classed else {}

    def config(self, model: Model, class_name: str) -> Data:
        if model.architecture != "vision-language":
            raise UnfitError(f"architecture {model.architecture}")
        connector = model.connector
        assert model.image is not None
        assert model.decoder is not None
        if not isinstance(connector, MlpConnector) or connector.hidden not in (None, model.output_width):
            raise UnfitError("connector of other layers than two as wide as the decoder")
        if connector.shuffle > 1 or connector.norm is not None:
            raise UnfitError("connector with pixel shuffle or a norm")
        if model.image.ends_with_norm:
            raise UnfitError("image.final_norm")
        without = {"image": None, "connector": None}
        seen = alone(
            model, "encoder", model.image,
            {**without, "decoder": None, "head": NoHead(), "vocab_size": None, "context_length": None},
        )  # fmt: skip
        classed = bool(getattr(seen.embedding, "class_token", False))
        images, class_of_images = _IMAGES["clip_vision_model" if classed else "siglip_vision_model"]
        if not classed:
            stack = seen.last_stack.model_copy(update={"final_norm": None})
            seen = seen.model_copy(update={"encoder": stack})
        words = alone(model, "decoder", model.decoder, without)
        place = Place(model, model.last_stack, model.last_stack.layer_blocks()[0], "connector")
        family, class_of_words = _WORDS[_family_of_words(words)]
        text = {_TIED: False, **family.config(words, class_of_words)}
        return {
            "architectures": [class_name],
            "model_type": self.model_type,
            "vision_config": images.body_config(seen, class_of_images),
            "text_config": text,
            _TIED: text[_TIED],
            _LAYER: -1,
            _STRATEGY: "full" if connector.class_token or not classed else "default",
            "image_seq_length": model.vectors_per_image,
            **write(_CONNECTOR, connector, place),
        }


def _family_of_words(words: Model) -> str:
    """The family of a decoder: Mistral has windows, and Qwen2 biases of queries, keys and values alone."""
    attention = words.last_stack.layer_blocks()[0].attention
    if not isinstance(attention, MultiHeadShape):
        raise UnfitError("decoder without attention of heads in every layer")
    if getattr(attention, "window", None) is not None:
        return "mistral"
    return "qwen2" if attention.bias.query and not attention.bias.output else "llama"


_OF_IMAGES = tuple(
    replace(rule, also=(rule.stored.replace("vision_tower.", "vision_tower.vision_model."),))
    for rule in rules_of_tower(
        "image",
        tuple(
            {
                rule.parameters: rule
                for rule in (*CLIP.tensors.rules, *SIGLIP.tensors.rules)
                if not rule.parameters[0].startswith("head.") and "final_norm" not in rule.parameters[0]
            }.values()
        ),
        "vision_tower.",
    )
)


def _inside(rule: Rule) -> Rule:
    return replace(rule, stored=f"language_model.model.{rule.stored}")


FAMILIES = (
    _Llava(
        "llava",
        Tensors(
            "llava",
            (
                *_OF_IMAGES,
                *affine("multi_modal_projector.linear_1", "connector.up"),
                *affine("multi_modal_projector.linear_2", "connector.down"),
                *map(_inside, LLAMA.rules),
            ),
            heads={"language_modeling": (same("language_model.lm_head.weight", "head.vocabulary.weight"),)},
            optional=("vision_tower.*", "language_model.lm_head.weight"),
            unused=("*.embeddings.position_ids",),
        ),
        classes={"LlavaForConditionalGeneration": HeadClass("language_modeling")},
    ),
)
