"""The config of a model with its own code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specs.model.model import Model
from zoo.models.stack import Stack
from zoo.remote_code.attentions import Attentions, cached_windows

INDENT = "    "

_CLASS = '''
from transformers import PretrainedConfig


class {prefix}Config(PretrainedConfig):
    """The settings of {name} that engines read."""

    model_type = "zoo"
    keys_to_ignore_at_inference = ["past_key_values"]
    base_model_tp_plan = {tp_plan}
    base_model_pp_plan = {pp_plan}

{fields}
'''


def config_of(
    spec: Model, stack: Stack, attentions: Attentions, *, own_cache: bool, tied: bool
) -> dict[str, Any]:
    """The values of config.json that say what a model is, without names of classes and the dtype of weights."""
    layers = attentions.of_layers(stack)
    first = next(iter(layers.values()), None)
    heads = 1 if first is None else first.heads
    config: dict[str, Any] = {
        "vocab_size": spec.vocab_size or 1,
        "hidden_size": spec.output_width,
        "num_hidden_layers": len(stack.blocks),
        "num_attention_heads": heads,
        "num_key_value_heads": heads if first is None else first.key_heads,
        "head_dim": spec.output_width // heads if first is None else first.width,
        "max_position_embeddings": spec.context_length_of(spec.last_stack) or 2**20,
        "initializer_range": 0.02,
        "tie_word_embeddings": tied,
    }
    if spec.decodes:
        config |= {"use_cache": True}
    if spec.architecture == "encoder-decoder":
        config |= {"is_encoder_decoder": True, "decoder_start_token_id": 0}
    windows = cached_windows(stack, attentions)
    sizes = {window for window in windows.values() if window is not None}
    if (
        len(sizes) == 1
        and spec.architecture == "decoder"
        and not own_cache
        and len(windows) == len(stack.blocks)
    ):
        config["sliding_window"] = next(iter(sizes))
        config["layer_types"] = [
            "full_attention" if window is None else "sliding_attention" for window in windows.values()
        ]
    caps = {attention.softcap for attention in layers.values()}
    if caps and None not in caps and len(caps) == 1:
        config["attn_logit_softcapping"] = next(iter(caps))
    if spec.head.label_count is not None:
        config["num_labels"] = spec.head.label_count
    return config


def configuration_class(
    spec: Model,
    prefix: str,
    config: Mapping[str, Any],
    tp_plan: Mapping[str, str],
    pp_plan: Mapping[str, Any],
) -> str:
    """The class of the config, with the plans by which engines cut the model."""
    kinds = {int: "int", float: "float", bool: "bool"}
    fields = [
        f"{INDENT}{name}: {kinds[type(value)]} = {value!r}"
        for name, value in config.items()
        if name not in ("num_labels", "layer_types")
    ]
    if "layer_types" in config:
        fields.append(f"{INDENT}layer_types: list[str] | None = None")
    return _CLASS.format(
        prefix=prefix,
        name=spec.name,
        tp_plan=_mapping(tp_plan),
        pp_plan=_mapping(pp_plan),
        fields="\n".join(fields),
    )


def _mapping(values: Mapping[str, Any]) -> str:
    lines = "".join(f"{2 * INDENT}{name!r}: {value!r},\n" for name, value in values.items())
    return f"{{\n{lines}{INDENT}}}" if values else "{}"
