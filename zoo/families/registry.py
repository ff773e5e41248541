"""The families, in the order in which they are tried.  A module is imported when one of its families is requested.

Packages add families through the entry-point group ``zoo.families``: the name of an entry is a model_type, its value the module
whose ``FAMILIES`` has the family.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint

from specs.base.errors import PluginError, option_name
from specs.base.plugins import FAMILIES, broken, load_entry, plugin_entries
from specs.base.suggest import misspelt, suggestion
from zoo.families.alike import as_family, candidates, offer, text_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError
from zoo.families.common.family import Family
from zoo.families.common.tensors import Tensors

MODULES = {
    "zoo": "own",
    "bart": "seq2seq.bart",
    "bert": "encoders.bert",
    "bloom": "decoders.bloom",
    "falcon": "decoders.falcon",
    "albert": "encoders.albert",
    "clip_text_model": "vision.clip",
    "clip_vision_model": "vision.clip",
    "clip": "vision.clip",
    "metaclip_2_text_model": "vision.metaclip_2",
    "metaclip_2_vision_model": "vision.metaclip_2",
    "metaclip_2": "vision.metaclip_2",
    "chinese_clip": "vision.chinese_clip",
    "distilbert": "encoders.distilbert",
    "deberta-v2": "encoders.deberta",
    "deberta": "encoders.deberta",
    "electra": "encoders.electra",
    "gpt2": "decoders.gpt2",
    "gpt_neo": "decoders.gpt_neo",
    "gpt_neox": "decoders.gpt_neox",
    "gpt_neox_japanese": "decoders.gpt_neox_japanese",
    "gptj": "decoders.gptj",
    "llama": "decoders.llama",
    "llama4_text": "decoders.llama4",
    "deepseek_v2": "decoders.deepseek",
    "deepseek_v3": "decoders.deepseek",
    "kimi_k2": "decoders.deepseek",
    "gemma": "decoders.gemma",
    "gemma2": "decoders.gemma",
    "gemma3_text": "decoders.gemma3",
    "gemma3n_text": "decoders.gemma3n",
    "gemma4_text": "decoders.gemma4",
    "gpt_oss": "decoders.gpt_oss",
    "mistral": "decoders.mistral",
    "mixtral": "decoders.mixtral",
    "olmo": "decoders.olmo",
    "olmo2": "decoders.olmo2",
    "olmoe": "decoders.olmoe",
    "openai-gpt": "decoders.openai_gpt",
    "opt": "decoders.opt",
    "pegasus": "seq2seq.marian",
    "phi": "decoders.phi",
    "phi3": "decoders.phi3",
    "qwen2": "decoders.qwen2",
    "qwen2_moe": "decoders.qwen_moe",
    "qwen3": "decoders.qwen3",
    "qwen3_moe": "decoders.qwen_moe",
    "olmo_hybrid": "hybrids.olmo_hybrid",
    "qwen3_next": "hybrids.qwen3_next",
    "qwen3_5_text": "hybrids.qwen3_next",
    "qwen3_5_moe_text": "hybrids.qwen3_next",
    "seed_oss": "decoders.seed_oss",
    "siglip_vision_model": "vision.siglip",
    "siglip": "vision.siglip",
    "owlvit": "vision.owlvit",
    "llava": "vision_language.llava",
    "gemma3": "vision_language.gemma3_images",
    "qwen2_vl": "vision_language.qwen2_vl",
    "qwen2_5_vl": "vision_language.qwen2_5_vl",
    "qwen3_vl": "vision_language.qwen3_vl",
    "qwen3_vl_moe": "vision_language.qwen3_vl_moe",
    "qwen3_5": "vision_language.qwen3_5",
    "qwen3_5_moe": "vision_language.qwen3_5",
    "paligemma": "vision_language.paligemma",
    "colpali": "vision_language.retrieval",
    "colqwen2": "vision_language.retrieval",
    "colmodernvbert": "vision_language.retrieval",
    "modernvbert": "vision_language.modernvbert",
    "internvl": "vision_language.internvl",
    "idefics2": "vision_language.idefics2",
    "idefics3": "vision_language.idefics3",
    "smolvlm": "vision_language.idefics3",
    "smollm3": "decoders.smollm3",
    "stablelm": "decoders.stablelm",
    "apertus": "decoders.apertus",
    "arcee": "decoders.arcee",
    "codegen": "decoders.codegen",
    "cohere": "decoders.cohere",
    "cohere2": "decoders.cohere",
    "dots1": "decoders.dots1",
    "ernie4_5": "decoders.ernie4_5",
    "ernie4_5_moe": "decoders.ernie4_5",
    "exaone4": "decoders.exaone4",
    "glm": "decoders.glm",
    "glm4": "decoders.glm",
    "glm4_moe": "decoders.glm4_moe",
    "gpt_bigcode": "decoders.gpt_bigcode",
    "granite": "decoders.granite",
    "granitemoe": "decoders.granite",
    "granitemoeshared": "decoders.granite",
    "granitemoehybrid": "decoders.granite",
    "granite_swa": "decoders.granite_swa",
    "granitemoe_swa": "decoders.granite_swa",
    "mamba": "hybrids.mamba",
    "falcon_mamba": "hybrids.mamba",
    "mamba2": "hybrids.mamba2",
    "bamba": "hybrids.bamba",
    "falcon_h1": "hybrids.falcon_h1",
    "jamba": "hybrids.jamba",
    "nemotron_h": "hybrids.nemotron_h",
    "helium": "decoders.helium",
    "hunyuan_v1_dense": "decoders.hunyuan_v1",
    "hunyuan_v1_moe": "decoders.hunyuan_v1",
    "hy_v3": "decoders.hy_v3",
    "hyperclovax": "decoders.hyperclovax",
    "bailing_hybrid": "hybrids.bailing_hybrid",
    "kimi_linear": "hybrids.kimi_linear",
    "lfm2": "hybrids.lfm2",
    "lfm2_moe": "hybrids.lfm2",
    "lfm3": "hybrids.lfm3",
    "minimax": "hybrids.minimax",
    "minicpm3": "decoders.minicpm3",
    "laguna": "decoders.laguna",
    "sarvam_moe": "decoders.sarvam",
    "sarvam_mla": "decoders.sarvam",
    "flint": "decoders.flint",
    "mimo_v2_flash": "decoders.mimo_v2_flash",
    "minimax_m2": "decoders.minimax_m2",
    "ministral3": "decoders.ministral3",
    "mistral4": "decoders.mistral4",
    "mpt": "decoders.mpt",
    "nemotron": "decoders.nemotron",
    "olmo3": "decoders.olmo3",
    "phimoe": "decoders.phimoe",
    "recurrent_gemma": "hybrids.recurrent_gemma",
    "rwkv7": "hybrids.rwkv7",
    "starcoder2": "decoders.starcoder2",
    "xglm": "decoders.xglm",
    "cwm": "decoders.cwm",
    "ministral": "decoders.ministral",
    "exaone": "decoders.exaone",
    "exaone_moe": "decoders.exaone_moe",
    "afmoe": "decoders.afmoe",
    "mellum": "decoders.mellum",
    "dbrx": "decoders.dbrx",
    "internlm3": "decoders.internlm3",
    "iquestcoder": "decoders.internlm3",
    "solar_open": "decoders.solar_open",
    "flex_olmo": "decoders.flex_olmo",
    "jais2": "decoders.jais2",
    "vaultgemma": "decoders.vaultgemma",
    "nanochat": "decoders.nanochat",
    "glm4_moe_lite": "decoders.glm4_moe_lite",
    "youtu": "decoders.youtu",
    "biogpt": "decoders.biogpt",
    "zamba": "hybrids.zamba",
    "zamba2": "hybrids.zamba2",
    "openai_privacy_filter": "encoders.openai_privacy_filter",
    "eurobert": "encoders.eurobert",
    "nomic_bert": "encoders.nomic_bert",
    "neobert": "encoders.neobert",
    "mpnet": "encoders.mpnet",
    "gte": "encoders.gte",
    "jina_embeddings_v3": "encoders.jina_embeddings_v3",
    "modernbert": "encoders.modernbert",
    "modernbert-decoder": "decoders.modernbert_decoder",
    "roberta": "encoders.roberta",
    "t5": "seq2seq.t5",
    "mt5": "seq2seq.t5",
    "umt5": "seq2seq.t5",
    "t5gemma": "seq2seq.t5gemma",
    "t5_gemma_module": "seq2seq.t5gemma",
    "longt5": "seq2seq.longt5",
    "switch_transformers": "seq2seq.switch_transformers",
    "vit": "vision.vit",
    "vit_msn": "vision.vit",
    "ijepa": "vision.vit",
    "vit_mae": "vision.vit",
    "deit": "vision.deit",
    "dinov2": "vision.dinov2",
    "dinov2_with_registers": "vision.dinov2",
    "dinov3_vit": "vision.dinov3",
    "beit": "vision.beit",
    "data2vec-vision": "vision.beit",
    "vision-encoder-decoder": "vision.vision_encoder_decoder",
    "blip": "vision_language.blip",
    "whisper": "speech.whisper",
    "wav2vec2": "speech.wav2vec2",
    "hubert": "speech.wav2vec2",
    "unispeech": "speech.wav2vec2",
    "unispeech-sat": "speech.wav2vec2",
    "data2vec-audio": "speech.data2vec_audio",
    "audio-spectrogram-transformer": "speech.audio_spectrogram_transformer",
    "wavlm": "speech.wav2vec2",
    "moonshine": "speech.moonshine",
    "wav2vec2-bert": "speech.wav2vec2_bert",
    "wav2vec2-conformer": "speech.wav2vec2_conformer",
    "parakeet_ctc": "speech.parakeet",
    "parakeet_encoder": "speech.parakeet",
    "xlm-roberta": "encoders.roberta",
    "camembert": "encoders.roberta",
    "data2vec-text": "encoders.roberta",
    "roberta-prelayernorm": "encoders.roberta",
    "xlm-roberta-xl": "encoders.roberta",
    "ernie": "encoders.bert",
    "layoutlm": "encoders.bert",
    "bros": "encoders.bert",
    "lilt": "encoders.lilt",
    "eomt": "vision.eomt",
    "eomt_dinov3": "vision.eomt",
    "megatron-bert": "encoders.megatron_bert",
    "ibert": "encoders.roberta",
    "bert-generation": "encoders.bert",
    "splinter": "encoders.bert",
    "mobilebert": "encoders.mobilebert",
    "roformer": "encoders.roformer",
    "rembert": "encoders.rembert",
    "dpr": "encoders.dpr",
    "xlm": "encoders.xlm",
    "flaubert": "encoders.xlm",
    "esm": "encoders.esm",
    "esmc": "encoders.esmc",
    "plbart": "seq2seq.bart",
    "blenderbot": "seq2seq.bart",
    "marian": "seq2seq.marian",
    "m2m_100": "seq2seq.m2m_100",
    "mvp": "seq2seq.bart",
    "nllb-moe": "seq2seq.nllb_moe",
    "mbart": "seq2seq.bart",
    "gemma4_unified_text": "decoders.gemma4_unified",
    "qwen2_vl_text": "vision_language.text_alone",
    "qwen2_5_vl_text": "vision_language.text_alone",
    "qwen2_5_omni_text": "vision_language.text_alone",
    "qwen3_vl_text": "vision_language.text_alone",
    "qwen3_vl_moe_text": "vision_language.text_alone",
    "paddleocr_vl_text": "vision_language.text_alone",
    "glm4v_text": "vision_language.text_alone",
    "glm4v_moe_text": "vision_language.text_alone",
    "qwen3_omni_moe_text": "vision_language.text_alone",
    "glm_ocr_text": "vision_language.text_alone",
    "torch": "seq2seq.torch_nn",
}
"""model_type -> the module of this package that has its family.

The order is one of preference: ``convert`` takes the first family whose config can express the whole spec, and tensors
without a config belong to the first family that names most of them.
"""

MODEL_TYPES = tuple(name for name in MODULES if name not in ("zoo", "torch"))
"""The families of this package with configs; the others only name tensors."""


@functools.cache
def _plugins() -> dict[str, EntryPoint]:
    """The families of other packages by model_type; one that is already taken is broken."""
    entries: dict[str, EntryPoint] = {}
    for entry in plugin_entries(FAMILIES):
        if entry.name in MODULES:
            broken(entry, f"is registered twice: by zoo.families.{MODULES[entry.name]} and by {entry.value}")
        elif entry.name in entries:
            broken(entry, f"is registered twice: by {entries[entry.name].value} and by {entry.value}")
        else:
            entries[entry.name] = entry
    return entries


def model_types() -> tuple[str, ...]:
    """The families with configs, plugins last."""
    return (*MODEL_TYPES, *_plugins())


def has_tensors(model_type: object) -> bool:
    """Whether checkpoints of a model_type can be read."""
    return model_type in MODULES or model_type in _plugins()


def family(model_type: str) -> Family:
    """The family of a known model_type. Raises :class:`PluginError` for a plugin that does not work."""
    if model_type in MODULES:
        return _named(importlib.import_module(f"zoo.families.{MODULES[model_type]}").FAMILIES, model_type)
    entry = _plugins()[model_type]
    members = getattr(load_entry(entry), "FAMILIES", None)
    if not isinstance(members, tuple) or not all(isinstance(member, Family) for member in members):
        raise broken(entry, "must have a tuple FAMILIES of zoo.families.common.family.Family")
    if model_type not in (member.model_type for member in members):
        raise broken(entry, f"has no family with the model_type {model_type!r} in FAMILIES")
    return _named(members, model_type)


def _named(members: Iterable[Family], model_type: str) -> Family:
    return next(member for member in members if member.model_type == model_type)


def _working(names: Iterable[str]) -> Iterator[Family]:
    """The families of some names, without plugins that do not work."""
    for name in names:
        with contextlib.suppress(PluginError):
            yield family(name)


def families() -> Iterator[Family]:
    """Every family that has configs, in order."""
    return _working(model_types())


def tensor_names() -> list[Tensors]:
    """Every table of tensor names once, in order."""
    names = (*MODULES, *_plugins())
    return list({id(table): table for table in (member.tensors for member in _working(names))}.values())


def family_of_config(config: Config) -> Family:
    """Return the family that a config names.

    Raises :class:`ConfigError` for an unknown one, with the family whose fields and tensors it has or a suggestion.
    """
    model_type = config.any("model_type")
    if model_type is None:
        config.refuse("model_type", "is required, as it names the family", _remedy(config))
    config.refuse_inexpressible()
    known = model_types()
    if isinstance(model_type, str) and model_type not in known and config.has("text_config"):
        config.refuse(
            "model_type",
            "must be a text model: its other parts are not supported",
            _like(config) or _text_remedy(config),
        )
    if not isinstance(model_type, str) or model_type not in known:
        near = misspelt(str(model_type), sorted(known))
        remedy = f"Did you mean {near!r}?" if near else "zoo has no family like it."
        config.refuse("model_type", "is not a supported family", _like(config) or remedy)
    return family(model_type)


def read_as(config: Config, model_type: str) -> Config:
    """Return the config of an unknown type, or of a model whose text alone is supported, as a config of a family, or a config as one
    of another class of its family.

    Raises :class:`ConfigError` where the type is a supported family, or one whose missing part is known.
    """
    known = model_types()
    if (beside := _as_class(config, model_type)) is not None:
        return beside
    if model_type not in known:
        remedy = suggestion(model_type, sorted(known))
        raise ConfigError(f"{option_name('family')} {model_type!r} is not a supported family\n  {remedy}")
    named_type = config.data.get("model_type")
    inner = config.data.get("text_config")
    inner_type = inner.get("model_type") if isinstance(inner, dict) else None
    if named_type in known and model_type not in (named_type, inner_type):
        rule = f"is a supported family, and is not read as {model_type}"
        config.refuse("model_type", rule, f"Leave {option_name('family')} out.")
    if isinstance(inner, dict) and inner_type in known and model_type != inner_type:
        rule = f"is a supported family, and is not read as {model_type}"
        Config(inner, config.where, "text_config.").refuse(
            "model_type", rule, f"Pass {option_name('family')} {inner_type}."
        )
    config.refuse_inexpressible()
    renamed = as_family(config, family(model_type))
    if isinstance(inner, dict) and inner_type != model_type:
        Config(inner, config.where, "text_config.").refuse_inexpressible()
    return renamed


def _as_class(config: Config, class_name: str) -> Config | None:
    """Return a config, or its text model's, with another class of the family; None where the family lacks the class."""
    for subject in filter(None, (config, text_config(config))):
        model_type = subject.data.get("model_type")
        if model_type in model_types() and class_name in family(model_type).classes:
            data = {**subject.data, "architectures": [class_name]}
            return Config(data, config.where, tensors=subject.tensor_names)
    return None


def _like(config: Config) -> str:
    """Return the offer to read a config as a family that it is like; empty without one."""
    return offer(config, candidates(families()))


def _named_class(config: Config) -> tuple[str, str | None]:
    """Return the first class that a config names and that belongs to a family, and the family; None where there is none."""
    named = config.data.get("architectures")
    names = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    known = ((name, member.model_type) for member in families() for name in names if name in member.classes)
    return next(known, ("", None))


def _text_remedy(config: Config) -> str:
    """Return the way to read the text model of a config of several models, by its type or by the class it names."""
    text = text_config(config) or config
    if text.data.get("model_type") in model_types():
        return "Save text_config as a config.json of its own, with the tensors of the text model."
    named, model_type = _named_class(text)
    if model_type is None:
        return "zoo has no family like its text model."
    option = option_name("family")
    return f"The class of its text model is {named}, of {model_type}. Pass {option} {model_type} to export, build or import it as that family."


def _remedy(config: Config) -> str:
    """Return the family to add to a config without one, if the class it names belongs to a family."""
    named, model_type = _named_class(config)
    if model_type is not None:
        return f'Add "model_type": "{model_type}", the family of {named}.'
    return (
        _like(config)
        or 'Add it, such as "model_type": "bert", if the config is one of transformers; others are not read.'
    )
