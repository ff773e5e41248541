"""Decoders of vision-language families, by the ``text_config`` inside the config of a whole model."""

from __future__ import annotations

from specs.kinds.attention import MultiHeadShape
from specs.model.model import Model
from zoo.families.common.config import Config
from zoo.families.common.template import Data, UnfitError
from zoo.families.common.vision_language import TEXT_CONFIG, TIED, decoder_alone
from zoo.families.decoders.llama import FAMILIES as LLAMA_FAMILIES
from zoo.families.decoders.mistral import FAMILIES as MISTRAL_FAMILIES
from zoo.families.decoders.qwen2 import FAMILIES as QWEN2_FAMILIES
from zoo.families.decoders.qwen3 import FAMILIES as QWEN3_FAMILIES

_DECODERS = {
    "llama": (LLAMA_FAMILIES[0], "LlamaForCausalLM"),
    "mistral": (MISTRAL_FAMILIES[0], "MistralForCausalLM"),
    "qwen2": (QWEN2_FAMILIES[0], "Qwen2ForCausalLM"),
    "qwen3": (QWEN3_FAMILIES[0], "Qwen3ForCausalLM"),
}


def decoder_spec(config: Config, ignored: tuple[str, ...] = ()) -> Data:
    """The spec of the decoder in a config, which has ``ignored`` fields, without a name."""
    text = config.model(TEXT_CONFIG, _DECODERS, (TIED, *ignored))
    family, class_name = _DECODERS[text.data["model_type"]]
    return family.spec(text, class_name)


def decoder_config(model: Model) -> Data:
    """The config of the decoder of a model."""
    decoder = decoder_alone(model)
    family, class_name = _DECODERS[_family_of(decoder)]
    return {TIED: False, **family.config(decoder, class_name)}


def _family_of(decoder: Model) -> str:
    """The family of a decoder: Qwen3 norms queries and keys, Mistral has windows, and Qwen2 biases of queries, keys and values
    alone."""
    attention = decoder.last_stack.layer_blocks()[0].attention
    if not isinstance(attention, MultiHeadShape):
        raise UnfitError("decoder without attention of heads in every layer")
    if attention.qk_norm is not None:
        return "qwen3"
    if attention.window is not None:
        return "mistral"
    return "qwen2" if attention.bias.query and not attention.bias.output else "llama"
