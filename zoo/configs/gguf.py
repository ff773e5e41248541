"""A GGUF file's metadata as the config.json that transformers would have for the model."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from specs.base.errors import shorten
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError, UnsupportedFieldsError
from zoo.weights.gguf_header import (
    FREQUENCIES,
    MODEL_TYPES,
    Header,
    frequency_divisors,
    long_rope_factors,
    model_type_of,
    read_header,
)
from zoo.weights.source import WeightError

_CLASSES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "phi3": "Phi3ForCausalLM",
}
_KEYS = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "max_position_embeddings": "context_length",
    "original_max_position_embeddings": "rope.scaling.original_context_length",
    "rope_theta": "rope.freq_base",
    "rope_local_base_freq": "rope.freq_base_swa",
    "rope_scaling.factor": "rope.scaling.factor",
    "rope_scaling.beta_fast": "rope.scaling.yarn_beta_fast",
    "rope_scaling.beta_slow": "rope.scaling.yarn_beta_slow",
    "sliding_window": "attention.sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "vocab_size": "vocab_size",
}
"""The keys that config fields are read from, without the prefix of the architecture."""

_FIELD = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, _KEYS))})(?![\w.])")
_TOKENS = {"bos_token_id": "bos_token_id", "eos_token_id": "eos_token_id", "padding_token_id": "pad_token_id"}
_TOLERANCE = 1e-4  # relative
_REMEDY = "Use the model's safetensors."


def config_of_gguf(path: Path, ignored: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of ``config.json`` for the model in a GGUF file, as the config class of its family has them.

    ``ignored`` are unsupported keys to accept. Raises :class:`WeightError` for files that are not GGUF, and for
    architectures and keys that no such config can express.
    """
    return config_of_header(read_header(path), ignored)


def config_of_header(header: Header, ignored: Collection[str] = ()) -> dict[str, Any]:
    """Return the same of a header that is read.  Raises as :func:`config_of_gguf`."""
    path, model_type = header.path, model_type_of(header)
    _check_keys(header, ignored)
    hidden, heads = header.number("embedding_length"), header.number("attention.head_count")
    config: dict[str, Any] = {
        "model_type": model_type,
        "architectures": [_CLASSES[model_type]],
        "vocab_size": _vocabulary(header),
        "hidden_size": hidden,
        "intermediate_size": header.number("feed_forward_length"),
        "num_hidden_layers": header.number("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": _or(header, "attention.head_count_kv", heads),
        "head_dim": _or(header, "attention.key_length", hidden // heads),
        "hidden_act": "silu",
        "rms_norm_eps": _real(header, "attention.layer_norm_rms_epsilon"),
        "max_position_embeddings": header.number("context_length"),
        "rope_theta": _real(header, "rope.freq_base", 10000.0),
        "tie_word_embeddings": "output.weight" not in header.tensors,
    }
    if model_type in _OWN_FIELDS:
        config |= _OWN_FIELDS[model_type](header, config)
    rotated = _or(header, "rope.dimension_count", config["head_dim"])
    if rotated != config["head_dim"]:
        raise WeightError(
            f"{path} rotates {rotated} of {config['head_dim']} dimensions of a head, but {model_type} rotates all\n  {_REMEDY}"
        )
    values = _or(header, "attention.value_length", config["head_dim"])
    if values != config["head_dim"]:
        raise WeightError(
            f"{path} has values of width {values} and keys of width {config['head_dim']}, but {model_type} needs equal widths\n  {_REMEDY}"
        )
    scaling = _scaling(header, config["rope_theta"], rotated)
    if scaling is not None:
        config["rope_scaling"] = scaling
    for theirs, ours in _TOKENS.items():
        if (token := header.metadata.get(f"tokenizer.ggml.{theirs}")) is not None:
            config[ours] = token
    return config


@contextmanager
def fields_as_keys(config: Config) -> Iterator[None]:
    """Let :class:`ConfigError` name the keys of a GGUF file in the place of the fields of its config."""
    try:
        yield
    except ConfigError as error:
        prefix = next(name for name, kind in MODEL_TYPES.items() if kind == config.data["model_type"])
        places = str(error).split(config.where)
        named = (_FIELD.sub(lambda match: f"{prefix}.{_KEYS[match[1]]}", text) for text in places)
        raise ConfigError(config.where.join(named)) from None


def _llama(header: Header, config: dict[str, Any]) -> dict[str, Any]:
    return {
        "attention_bias": "blk.0.attn_q.bias" in header.tensors,
        "mlp_bias": "blk.0.ffn_up.bias" in header.tensors,
    }


def _gemma(header: Header, config: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(("hidden_act", "hidden_activation"), "gelu_pytorch_tanh")


def _gemma2(header: Header, config: dict[str, Any]) -> dict[str, Any]:
    return {
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": _query_scalar(config, 46),
        "attn_logit_softcapping": _real(header, "attn_logit_softcapping", 50.0),
        "final_logit_softcapping": _real(header, "final_logit_softcapping", 30.0),
        "sliding_window": _or(header, "attention.sliding_window", 4096),
    }


def _gemma3(header: Header, config: dict[str, Any]) -> dict[str, Any]:
    """Return the windows of five layers in six and their rotation, both of which are built into llama.cpp."""
    fields: dict[str, Any] = {
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": _query_scalar(config, 62),
        "sliding_window": header.number("attention.sliding_window"),
        "rope_local_base_freq": _real(header, "rope.freq_base_swa", 10000.0),
    }
    if header.get("final_logit_softcapping") is not None:
        fields["final_logit_softcapping"] = _real(header, "final_logit_softcapping")
    return fields


def _query_scalar(config: dict[str, Any], largest: int) -> int:
    """Return the square of the divisor of scores: the head width, except in the model with 27 billion parameters, which is
    recognized by its number of layers. Files do not state it; it is built into llama.cpp."""
    width = config["hidden_size"] // config["num_attention_heads"]
    return int(width if config["num_hidden_layers"] == largest else config["head_dim"])


def _phi3(header: Header, config: dict[str, Any]) -> dict[str, Any]:
    window = header.get("attention.sliding_window")
    original = _or(header, "rope.scaling.original_context_length", config["max_position_embeddings"])
    return {
        "sliding_window": header.number("attention.sliding_window") if window else None,
        "original_max_position_embeddings": original,
    }


_OWN_FIELDS: dict[str, Callable[[Header, dict[str, Any]], dict[str, Any]]] = {
    "llama": _llama,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "phi3": _phi3,
}
"""Readers of the config fields that only one family has."""

_FAMILY_KEYS = {
    "gemma2": ("attention.sliding_window", "attn_logit_softcapping", "final_logit_softcapping"),
    "gemma3_text": ("attention.sliding_window", "final_logit_softcapping", "rope.freq_base_swa"),
    "phi3": ("attention.sliding_window", "rope.scaling.attn_factor"),
}
"""The keys that only one family has."""

_READ = frozenset(
    [
        "attention.head_count", "attention.head_count_kv", "attention.key_length",
        "attention.layer_norm_rms_epsilon", "attention.value_length", "block_count", "context_length",
        "embedding_length", "expert_count", "feed_forward_length", "rope.dimension_count", "rope.freq_base",
        "rope.scale_linear", "rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.type",
        "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow", "vocab_size",
    ]
)  # fmt: skip
"""The keys of an architecture that this module reads, or that are read with the tensors."""

_NEUTRAL: dict[str, Any] = {
    "expert_used_count": 0,
    "rope.scaling.attn_factor": 1.0,
    "rope.scaling.yarn_attn_factor": 1.0,
    "rope.scaling.yarn_ext_factor": 1.0,
}
"""Keys that have no effect at this value."""

_SILENT = frozenset(["rope.scaling.finetuned", "tensor_data_layout"])
"""Keys that record the origin of a model."""


def _check_keys(header: Header, ignored: Collection[str]) -> None:
    """Raise :class:`UnsupportedFieldsError` where the architecture has unsupported keys: llama.cpp may act on any of them."""
    left = [
        key
        for key in header.keys()  # noqa: SIM118
        if key not in _READ | _SILENT
        and key not in _FAMILY_KEYS.get(MODEL_TYPES[header.metadata["general.architecture"]], ())
        and header.prefix + key not in ignored
        and not (key in _NEUTRAL and header.get(key) == _NEUTRAL[key])
    ]
    if left:
        raise UnsupportedFieldsError(str(header.path), {header.prefix + key: header.get(key) for key in left})


def _vocabulary(header: Header) -> int:
    """Return the number of rows of the embedding: files may pad the list of tokens, or omit it."""
    table = header.tensors.get("token_embd.weight")
    return table.shape[0] if table else _or(header, "vocab_size", header.vocabulary)


def _or(header: Header, key: str, default: int) -> int:
    return default if header.get(key) is None else header.number(key)


def _real(header: Header, key: str, default: float | None = None) -> float:
    """Return a float32 number with as few digits as identify it."""
    value = header.get(key, default)
    if not isinstance(value, int | float):
        raise WeightError(
            f"{header.path} has no {header.metadata['general.architecture']}.{key}\n  Convert the model again."
        )
    return float(str(np.float32(value)))


def _scaling(header: Header, theta: float, dimensions: int) -> dict[str, Any] | None:
    kind = header.get("rope.scaling.type", "linear")  # as in llama.cpp: a factor alone is linear
    factor = _factor(header)
    if kind not in ("none", "linear", "yarn"):
        raise WeightError(
            f"{header.path}: rope.scaling.type must be none, linear or yarn\n  value: {shorten(kind)}\n  {_REMEDY}"
        )
    if (factors := long_rope_factors(header)) is not None:
        amplitude = header.get("rope.scaling.attn_factor")
        fields = {} if amplitude is None else {"attention_factor": _real(header, "rope.scaling.attn_factor")}
        return {"rope_type": "longrope", **factors, **fields}
    divisors = frequency_divisors(header)
    if divisors is not None:
        if kind == "yarn" or (kind == "linear" and factor not in (None, 1.0)):
            raise WeightError(
                f"{header.path} scales rotary frequencies twice: by rope.scaling and by {FREQUENCIES}\n  {_REMEDY}"
            )
        return _llama3(header, divisors, theta, dimensions)
    if kind == "none" or (kind == "linear" and factor is None and header.get("rope.scaling.type") is None):
        return None
    if factor is None:
        raise WeightError(
            f"{header.path} has no {header.prefix}rope.scaling.factor\n  Convert the model again."
        )
    scaling: dict[str, Any] = {"rope_type": kind, "factor": factor}
    if kind == "yarn":
        scaling["original_max_position_embeddings"] = header.number("rope.scaling.original_context_length")
        for key in ("beta_fast", "beta_slow"):
            if header.get(f"rope.scaling.yarn_{key}") is not None:
                scaling[key] = _real(header, f"rope.scaling.yarn_{key}")
    return scaling


def _factor(header: Header) -> float | None:
    """Return the factor by which positions are scaled; None where the file has none. As in llama.cpp, 0 means 1."""
    for key in ("rope.scaling.factor", "rope.scale_linear"):  # the second in old files
        if header.get(key) is not None:
            return _real(header, key) or 1.0
    return None


def _llama3(
    header: Header, divisors: np.ndarray[Any, np.dtype[np.float32]], theta: float, dimensions: int
) -> dict[str, Any] | None:
    """Return the scaling that divides frequencies by these numbers; the file records nothing else of it."""
    if np.allclose(divisors, 1.0):
        return None
    frequencies = theta ** -(np.arange(0, dimensions, 2) / dimensions)
    if divisors.shape == frequencies.shape:
        for low, high, length in _candidates():
            kept = np.clip((length * frequencies / (2 * math.pi) - low) / (high - low), 0, 1)
            factor = float(np.round(divisors.max(), 4))
            if np.allclose(1 / ((1 - kept) / factor + kept), divisors, rtol=_TOLERANCE, atol=0):
                return {
                    "rope_type": "llama3",
                    "factor": factor,
                    "low_freq_factor": low,
                    "high_freq_factor": high,
                    "original_max_position_embeddings": length,
                }
    raise WeightError(
        f"{header.path} divides rotary frequencies by numbers ({FREQUENCIES}) other than the divisors of llama3 scaling\n  {_REMEDY}"
    )


def _candidates() -> Iterator[tuple[float, float, int]]:
    """Yield Llama 3.1's own factors and context first, then other contexts."""
    lengths = itertools.chain([8192], (2**power for power in range(4, 22)))
    return ((1.0, 4.0, length) for length in lengths)
