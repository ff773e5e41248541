"""The families there are, by the model_type of their configs.  A module is imported when one of its families is asked for."""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Iterator

from specs.suggest import nearest
from zoo.configs.config import Config
from zoo.configs.family import ConfigFamily

MODULES: dict[str, str] = {
    "bart": "bart",
    "bert": "bert",
    "bloom": "bloom",
    "falcon": "falcon",
    "albert": "albert",
    "clip_text_model": "clip",
    "clip": "clip",
    "distilbert": "distilbert",
    "electra": "electra",
    "gpt2": "gpt2",
    "gpt_neo": "gpt_neo",
    "gpt_neox": "gpt_neox",
    "gptj": "gptj",
    "deepseek_v2": "deepseek",
    "deepseek_v3": "deepseek",
    "gemma": "gemma",
    "gemma2": "gemma",
    "gemma3_text": "gemma",
    "gpt_oss": "gpt_oss",
    "llama": "llama",
    "mistral": "mistral",
    "mixtral": "mixtral",
    "olmo": "olmo",
    "olmo2": "olmo2",
    "openai-gpt": "openai_gpt",
    "opt": "opt",
    "pegasus": "marian",
    "phi": "phi",
    "phi3": "phi3",
    "qwen2": "qwen2",
    "qwen2_moe": "qwen_moe",
    "qwen3": "qwen3",
    "qwen3_moe": "qwen_moe",
    "smollm3": "smollm3",
    "stablelm": "stablelm",
    "modernbert": "modernbert",
    "roberta": "roberta",
    "t5": "t5",
    "mt5": "t5",
    "vit": "vit",
    "whisper": "whisper",
    "xlm-roberta": "roberta",
    "marian": "marian",
    "mbart": "bart",
}
"""model_type -> the module of this package that has its family."""


def model_types() -> list[str]:
    """Every model_type that is known."""
    return sorted(MODULES)


def config_family(model_type: str) -> ConfigFamily:
    """The family of a model_type that is known."""
    module = importlib.import_module(f"zoo.configs.{MODULES[model_type]}")
    families: tuple[ConfigFamily, ...] = module.FAMILIES
    return next(family for family in families if family.model_type == model_type)


def config_families() -> Iterator[ConfigFamily]:
    """Every family, in the order in which a spec is tried on them."""
    return map(config_family, MODULES)


def family_of_config(config: Config) -> ConfigFamily:
    """The family that a config names.  Raises :class:`ConfigError` with the nearest where it is not known."""
    model_type = config.any("model_type")
    if isinstance(model_type, str) and model_type not in MODULES and config.has("text_config"):
        config.refuse(
            "model_type",
            "has parts beside a text model, which are not modelled",
            "text_config is a config of its own: give it alone, with the tensors of the text model",
        )
    if not isinstance(model_type, str) or model_type not in MODULES:
        near = nearest(str(model_type), model_types())
        supported = textwrap.fill(
            f"Supported families: {', '.join(model_types())}.",
            100,
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        config.refuse(
            "model_type", "is not a supported family", f"did you mean {near!r}?" if near else supported
        )
    return config_family(model_type)
