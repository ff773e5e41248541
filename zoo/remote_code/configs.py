"""The config of a model with its own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specs.model.model import Model
from zoo.components.attention import Projections
from zoo.models.stack import Stack
from zoo.remote_code import template
from zoo.remote_code.heads import WrittenHead
from zoo.remote_code.modules import INDENT
from zoo.remote_code.parts import EmbeddedStack
from zoo.remote_code.plans import pipeline_plan, tensor_plan
from zoo.remote_code.stacks import carries_state


def config_of(
    spec: Model, stack: Stack, module_name: str, prefix: str, head: WrittenHead, *, tied: bool
) -> dict[str, Any]:
    """The values of config.json, without the dtype of weights."""
    shapes = [each for each in stack.attentions.values() if isinstance(each, Projections)]
    first = shapes[0] if shapes else None
    any_attention: Any = next(iter(stack.attentions.values()), None)
    heads: int = 1 if any_attention is None else any_attention.heads
    windows = {getattr(each, "window", None) for each in stack.attentions.values()}
    caps = {getattr(each, "softcap", None) for each in stack.attentions.values()}
    config: dict[str, Any] = {
        "vocab_size": spec.vocab_size,
        "hidden_size": spec.output_width,
        "num_hidden_layers": len(stack.blocks),
        "num_attention_heads": heads,
        "num_key_value_heads": heads if first is None else first.key_value_heads,
        "head_dim": spec.output_width // heads if first is None else first.width,
        "max_position_embeddings": spec.context_length_of(spec.last_stack) or 2**20,
        "initializer_range": 0.02,
        "tie_word_embeddings": tied,
    }
    if spec.decodes:
        config |= {"use_cache": True}
    if spec.architecture == "encoder-decoder":
        config |= {"is_encoder_decoder": True, "decoder_start_token_id": 0}
    by_layer = spec.architecture == "decoder" and stack.causal and not carries_state(stack)
    if len(windows - {None}) == 1 and 1 not in windows and by_layer:  # caches keep a token at least
        config["sliding_window"] = next(iter(windows - {None}))
        config["layer_types"] = [
            "full_attention" if getattr(each, "window", None) is None else "sliding_attention"
            for each in stack.attentions.values()
        ]
    if caps != {None} and len(caps) == 1:
        config["attn_logit_softcapping"] = next(iter(caps))
    place = f"modeling_{module_name}"
    autos = {
        "AutoConfig": f"configuration_{module_name}.{prefix}Config",
        "AutoModel": f"{place}.{prefix}Model",
        head.auto: f"{place}.{head.name}",
    }
    labels = getattr(spec.head, "labels", None)
    if labels is not None:
        config["num_labels"] = labels
    return {"model_type": "zoo", "architectures": [head.name], "auto_map": autos, **config}


def configuration_class(
    spec: Model, parts: Sequence[EmbeddedStack], prefix: str, config: Mapping[str, Any]
) -> str:
    """The class of the config, with the plans by which engines cut the model."""
    skipped = ("model_type", "architectures", "auto_map", "num_labels", "layer_types")
    kinds = {int: "int", float: "float", bool: "bool"}
    fields = [
        f"{INDENT}{name}: {kinds[type(value)]} = {value!r}"
        for name, value in config.items()
        if name not in skipped
    ]
    if "layer_types" in config:
        fields.append(f"{INDENT}layer_types: list[str] | None = None")
    return template.CONFIGURATION.format(
        prefix=prefix,
        name=spec.name,
        tp_plan=_mapping(
            {path: cut for part in parts for path, cut in tensor_plan(part.stack, part.path).items()}
        ),
        pp_plan=_mapping(pipeline_plan(parts[0].stack, parts[0].path) if len(parts) == 1 else {}),
        fields="\n".join(fields),
    )


def _mapping(values: dict[str, Any]) -> str:
    lines = "".join(f"{2 * INDENT}{name!r}: {value!r},\n" for name, value in values.items())
    return f"{{\n{lines}{INDENT}}}" if values else "{}"
