"""The families, in the order in which they are tried.  A module is imported when one of its families is requested."""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Iterator

from specs.suggest import misspelt
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.tensors import Tensors

MODULES = {
    "zoo": "own",
    "bart": "bart",
    "bert": "bert",
    "bloom": "bloom",
    "falcon": "falcon",
    "albert": "albert",
    "clip_text_model": "clip",
    "clip_vision_model": "clip",
    "clip": "clip",
    "distilbert": "distilbert",
    "deberta-v2": "deberta",
    "electra": "electra",
    "gpt2": "gpt2",
    "gpt_neo": "gpt_neo",
    "gpt_neox": "gpt_neox",
    "gptj": "gptj",
    "llama": "llama",
    "llama4_text": "llama4",
    "deepseek_v2": "deepseek",
    "deepseek_v3": "deepseek",
    "kimi_k2": "deepseek",
    "gemma": "gemma",
    "gemma2": "gemma",
    "gemma3_text": "gemma3",
    "gemma3n_text": "gemma3n",
    "gemma4_text": "gemma4",
    "gpt_oss": "gpt_oss",
    "mistral": "mistral",
    "mixtral": "mixtral",
    "olmo": "olmo",
    "olmo2": "olmo2",
    "olmoe": "olmoe",
    "openai-gpt": "openai_gpt",
    "opt": "opt",
    "pegasus": "marian",
    "phi": "phi",
    "phi3": "phi3",
    "qwen2": "qwen2",
    "qwen2_moe": "qwen_moe",
    "qwen3": "qwen3",
    "qwen3_moe": "qwen_moe",
    "qwen3_next": "qwen3_next",
    "qwen3_5_text": "qwen3_next",
    "qwen3_5_moe_text": "qwen3_next",
    "seed_oss": "seed_oss",
    "siglip": "siglip",
    "owlvit": "owlvit",
    "llava": "llava",
    "gemma3": "gemma3_images",
    "qwen2_vl": "qwen2_vl",
    "qwen2_5_vl": "qwen2_5_vl",
    "qwen3_vl": "qwen3_vl",
    "qwen3_vl_moe": "qwen3_vl_moe",
    "qwen3_5": "qwen3_5",
    "qwen3_5_moe": "qwen3_5",
    "paligemma": "paligemma",
    "internvl": "internvl",
    "idefics2": "idefics2",
    "idefics3": "idefics3",
    "smolvlm": "idefics3",
    "smollm3": "smollm3",
    "stablelm": "stablelm",
    "apertus": "apertus",
    "arcee": "arcee",
    "codegen": "codegen",
    "cohere": "cohere",
    "cohere2": "cohere",
    "dots1": "dots1",
    "ernie4_5": "ernie4_5",
    "ernie4_5_moe": "ernie4_5",
    "exaone4": "exaone4",
    "glm": "glm",
    "glm4": "glm",
    "glm4_moe": "glm4_moe",
    "gpt_bigcode": "gpt_bigcode",
    "granite": "granite",
    "granitemoe": "granite",
    "granitemoehybrid": "granite",
    "mamba": "mamba",
    "falcon_mamba": "mamba",
    "mamba2": "mamba2",
    "bamba": "bamba",
    "falcon_h1": "falcon_h1",
    "jamba": "jamba",
    "nemotron_h": "nemotron_h",
    "helium": "helium",
    "hunyuan_v1_dense": "hunyuan_v1_dense",
    "kimi_linear": "kimi_linear",
    "lfm2": "lfm2",
    "lfm2_moe": "lfm2",
    "minimax": "minimax",
    "minimax_m2": "minimax_m2",
    "ministral3": "ministral3",
    "mpt": "mpt",
    "nemotron": "nemotron",
    "olmo3": "olmo3",
    "phimoe": "phimoe",
    "recurrent_gemma": "recurrent_gemma",
    "rwkv7": "rwkv7",
    "starcoder2": "starcoder2",
    "xglm": "xglm",
    "zamba": "zamba",
    "zamba2": "zamba2",
    "eurobert": "eurobert",
    "nomic_bert": "nomic_bert",
    "neobert": "neobert",
    "mpnet": "mpnet",
    "gte": "gte",
    "jina_embeddings_v3": "jina_embeddings_v3",
    "modernbert": "modernbert",
    "modernbert-decoder": "modernbert_decoder",
    "roberta": "roberta",
    "t5": "t5",
    "mt5": "t5",
    "umt5": "t5",
    "longt5": "longt5",
    "switch_transformers": "switch_transformers",
    "vit": "vit",
    "deit": "deit",
    "dinov2": "dinov2",
    "dinov2_with_registers": "dinov2",
    "dinov3_vit": "dinov3",
    "beit": "beit",
    "vision-encoder-decoder": "vision_encoder_decoder",
    "blip": "blip",
    "whisper": "whisper",
    "wav2vec2": "wav2vec2",
    "hubert": "wav2vec2",
    "wavlm": "wav2vec2",
    "moonshine": "moonshine",
    "wav2vec2-bert": "wav2vec2_bert",
    "wav2vec2-conformer": "wav2vec2_conformer",
    "parakeet_ctc": "parakeet",
    "parakeet_encoder": "parakeet",
    "xlm-roberta": "roberta",
    "camembert": "roberta",
    "data2vec-text": "roberta",
    "roberta-prelayernorm": "roberta",
    "marian": "marian",
    "m2m_100": "m2m_100",
    "nllb-moe": "nllb_moe",
    "mbart": "bart",
    "torch": "torch_nn",
}
"""model_type -> the module of this package that has its family.

The order is one of preference: ``convert`` takes the first family whose config can express the whole spec, and tensors
without a config belong to the first family that names most of them.
"""

MODEL_TYPES = tuple(name for name in MODULES if name not in ("zoo", "torch"))
"""The families with configs; the others only name tensors."""


def family(model_type: str) -> Family:
    """The family of a known model_type."""
    families: tuple[Family, ...] = importlib.import_module(f"zoo.families.{MODULES[model_type]}").FAMILIES
    return next(each for each in families if each.model_type == model_type)


def families() -> Iterator[Family]:
    """Every family that has configs, in order."""
    return map(family, MODEL_TYPES)


def tensor_names() -> list[Tensors]:
    """Every table of tensor names once, in order."""
    return list({id(table): table for table in (family(name).tensors for name in MODULES)}.values())


def family_of_config(config: Config) -> Family:
    """Return the family that a config names. Raises :class:`ConfigError` with a suggestion for a misspelt one."""
    model_type = config.any("model_type")
    if model_type is None:
        config.refuse("model_type", "is required, as it names the family", _remedy(config))
    config.refuse_inexpressible()
    if isinstance(model_type, str) and model_type not in MODEL_TYPES and config.has("text_config"):
        config.refuse(
            "model_type",
            "must be a text model: its other parts are not supported",
            "Save text_config as a config.json of its own, with the tensors of the text model.",
        )
    if not isinstance(model_type, str) or model_type not in MODEL_TYPES:
        near = misspelt(str(model_type), sorted(MODEL_TYPES))
        supported = textwrap.fill(
            f"Supported families: {', '.join(sorted(MODEL_TYPES))}.",
            100,
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        config.refuse(
            "model_type", "is not a supported family", f"Did you mean {near!r}?" if near else supported
        )
    return family(model_type)


def _remedy(config: Config) -> str:
    """Return the family to add to a config without one: that of its class, where it names one."""
    named = config.any("architectures")
    for each in families():
        if isinstance(named, list) and any(name in each.classes for name in named if isinstance(name, str)):
            return f'Add "model_type": "{each.model_type}", the family of {named[0]}.'
    return 'Add it, such as "model_type": "bert".'
