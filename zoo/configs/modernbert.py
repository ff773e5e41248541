"""ModernBERT (Warner et al., 2024): ``ModernBertConfig``.

Layers attend to everything or within a window, each kind with rotary frequencies of its own; the first attention follows
the norm of the embedding and has none.
"""

from __future__ import annotations

from typing import Any

from specs.block import BlockParts
from specs.model import Model
from specs.norm import LayerNorm, NoNorm
from specs.position import PositionKind
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, eps_of, gated_of, stack_of, std_of, tokens_of
from zoo.configs.encoders import masked
from zoo.configs.family import ConfigFamily, Data, HeadClass, UnfitError
from zoo.configs.heads import BODY, read_labels, write_labels
from zoo.configs.layers import pattern
from zoo.configs.rope import read_rope, rope_of, write_rope

_FULL, _LOCAL = "full_attention", "sliding_attention"
_THETAS = {_FULL: ("global_rope_theta", 160000.0), _LOCAL: ("local_rope_theta", 10000.0)}


def _read(config: Config, class_name: str) -> Data:
    d_model = config.int("hidden_size", default=768)
    heads = config.int("num_attention_heads", default=12)
    norm = _read_norm(config)
    types = _read_types(config, config.layers("num_hidden_layers", default=22))
    ropes = _read_ropes(config, d_model // max(heads, 1), config.int("max_position_embeddings", default=8192))
    block = {
        "kind": "pre_norm",
        "norm": norm,
        "attention": {
            "kind": "multi_head",
            "heads": heads,
            "bias": config.bool("attention_bias", default=False),
            "dropout": config.float("attention_dropout", default=0.0),
        },
        "feed_forward": {
            "kind": "gated",
            "hidden": config.int("intermediate_size", default=1152),
            "activation": read_activation(config, "hidden_activation", "gelu"),
            "bias": config.bool("mlp_bias", default=False),
            "dropout": config.float("mlp_dropout", default=0.0),
        },
    }
    window = config.int("local_attention", default=128)
    if window < 2:
        config.refuse("local_attention", "must be 2 or more: half of it is seen on either side")
    local = {"attention": {"window": window, "position": ropes[_LOCAL]}}
    first = {"attention_norm": {"kind": "none"}}
    variants = {"first": first, "local": local, "first_local": {**local, **first}}
    names = [_NAMES[layer == 0, kind == _LOCAL] for layer, kind in enumerate(types)]
    config.must("position_embedding_type", "absolute", "positions are rotary, whatever it says")
    config.ignore("classifier_activation", "classifier_bias", "classifier_dropout", "classifier_pooling")
    config.ignore(
        "decoder_bias", "sparse_prediction", "sparse_pred_ignore_index"
    )  # of heads, and of training
    config.ignore("deterministic_flash_attn", "reference_compile", "repad_logits_with_grad")
    config.ignore("initializer_cutoff_factor", "layer_norm_eps")
    return {
        "architecture": "encoder",
        "vocab_size": config.int("vocab_size", default=50368),
        "d_model": d_model,
        "context_length": config.int("max_position_embeddings", default=8192),
        "position": ropes[_FULL],
        "embedding": {"norm": norm, "dropout": config.float("embedding_dropout", default=0.0)},
        "encoder": {
            "layers": pattern(names),
            "block": block,
            "blocks": {name: variants[name] for name in variants if name in names},
        },
        "initialization": {
            "kind": "normal",
            "std": config.float("initializer_range", default=0.02),
            "depth_scaled": True,
        },
    }


_NAMES = {(False, False): None, (True, False): "first", (False, True): "local", (True, True): "first_local"}
"""The block of a layer: whether it is the first, and whether it has a window."""


def _read_norm(config: Config) -> Data:
    eps, bias = config.float("norm_eps", default=1e-5), config.bool("norm_bias", default=False)
    return {"kind": "layer_norm", "eps": eps, "bias": bias}


def _read_types(config: Config, layers: int) -> list[str]:
    """Which layers have a window: stated one by one, or all but every n-th."""
    every = config.int("global_attn_every_n_layers", default=3)
    if every < 1:
        config.refuse("global_attn_every_n_layers", "must be 1 or more")
    by_number = [_LOCAL if layer % every else _FULL for layer in range(layers)]
    types: list[str] = config.list("layer_types", default=by_number)
    if len(types) != layers or any(kind not in (_FULL, _LOCAL) for kind in types):
        config.refuse("layer_types", f"must be {_FULL} or {_LOCAL} for each of the {layers} layers")
    return types


def _read_ropes(config: Config, width: int, context: int) -> dict[str, Data]:
    """The positions of both kinds of layer."""
    both = config.part("rope_parameters")
    if both is not None:
        config.must("rope_scaling", None, "rope_parameters say it")
    ropes = {}
    for kind, (field, default) in _THETAS.items():
        stated = None if both is None else both.part(kind) or Config({}, config.where)
        if stated is not None:
            stated.must("partial_rotary_factor", 1.0, "heads are rotated whole")
        theta = config.float(field, default=default)
        ropes[kind] = read_rope(config, width=width, context=context, theta=theta, parameters=stated)
    if both is not None:
        both.finish()
    return ropes


_TOKENS = tuple(f"{name}_token_id" for name in ("pad", "bos", "eos", "cls", "sep"))
"""Special tokens, whose defaults may be beyond the vocabulary."""


def _write(model: Model) -> Data:
    stack = stack_of(model)
    blocks = stack.layer_blocks()
    attention, feed_forward, norm = attention_of(blocks[0]), gated_of(blocks[0]), blocks[0].norm
    if not isinstance(norm, LayerNorm):
        raise UnfitError(f"norm kind {norm.kind}")
    if not isinstance(blocks[0].attention_norm, NoNorm):
        raise UnfitError("a norm before the first attention")
    types = [_LOCAL if attention_of(block).window is not None else _FULL for block in blocks]
    window = max(attention_of(block).window or 0 for block in blocks)
    return {
        "vocab_size": model.vocab_size,
        **dict.fromkeys(_TOKENS),
        "hidden_size": model.d_model,
        "num_hidden_layers": len(blocks),
        "num_attention_heads": attention.heads,
        "intermediate_size": feed_forward.hidden,
        "hidden_activation": write_activation(feed_forward.activation),
        "max_position_embeddings": model.context_length or 8192,
        "norm_eps": eps_of(norm),
        "norm_bias": norm.bias,
        "attention_bias": attention.bias.query,
        "attention_dropout": attention.dropout,
        "mlp_bias": feed_forward.bias,
        "mlp_dropout": feed_forward.dropout,
        "embedding_dropout": tokens_of(model).dropout,
        **({"local_attention": window} if window else {}),
        **_write_types(types),
        **_write_ropes(model, blocks, types),
        **std_of(model),
    }


def _write_types(types: list[str]) -> Data:
    """The kind of each layer, and old readers' number of them where one fits."""
    fitting = (
        every
        for every in range(1, len(types) + 1)
        if all((kind == _LOCAL) == bool(layer % every) for layer, kind in enumerate(types))
    )
    every = next(fitting, None)
    return {"layer_types": types, **({} if every is None else {"global_attn_every_n_layers": every})}


def _write_ropes(model: Model, blocks: list[BlockParts], types: list[str]) -> Data:
    """Both positions as old readers take them, and whole where they are more than their base."""
    fields: Data = {}
    parameters: Data = {}
    for kind, (field, _) in _THETAS.items():
        block = next((block for block, stated in zip(blocks, types, strict=True) if stated == kind), None)
        if block is None:
            continue
        position = _position_of(model, block)
        written = write_rope(position, width=attention_of(block).head_width(model.d_model))
        if "partial_rotary_factor" in written:
            raise UnfitError("position.dimensions: heads are rotated whole")
        fields[field] = written["rope_theta"]
        parameters[kind] = {"rope_theta": written["rope_theta"], **(written["rope_scaling"] or {})}
    scaled = any(len(stated) > 1 for stated in parameters.values())
    return {**fields, **({"rope_parameters": parameters} if scaled else {})}


def _position_of(model: Model, block: BlockParts) -> PositionKind:
    return rope_of(attention_of(block).position or model.position_of(stack_of(model)))


# ------------------------------------------------------------------------------------------------------------ heads


def _transform(config: Config) -> Data:
    """The dense layer, activation and norm before every classifier."""
    return {
        "activation": read_activation(config, "classifier_activation", "gelu"),
        "dense_bias": config.bool("classifier_bias", default=False),
        "norm": _read_norm(config),
    }


def _write_transform(head: Any) -> Data:
    return {
        "classifier_activation": write_activation(head.activation or "identity"),
        "classifier_bias": head.dense_bias,
    }


def _masked() -> HeadClass:
    plain = masked(_transform)

    def read(config: Config) -> Data:
        return {**plain.read(config), "bias": config.bool("decoder_bias", default=True)}

    def write(head: Any) -> Data:
        return {**plain.write(head), **_write_transform(head), "decoder_bias": head.bias}

    return HeadClass(plain.kind, read, write)


_POOLING = {"cls": "first", "mean": "mean"}


def _classification(config: Config) -> Data:
    return {**_tokens(config), "pooling": config.choice("classifier_pooling", _POOLING, "cls")}


def _write_classification(head: Any) -> Data:
    pooling = next((name for name, ours in _POOLING.items() if ours == head.pooling), None)
    if pooling is None:
        raise UnfitError(f"head.pooling {head.pooling}")
    return {**_write_tokens(head), "classifier_pooling": pooling}


def _tokens(config: Config) -> Data:
    return {"labels": read_labels(config), **_answers(config)}


def _write_tokens(head: Any) -> Data:
    return {**write_labels(head), **_write_answers(head)}


def _answers(config: Config) -> Data:
    return {**_transform(config), "dropout": config.float("classifier_dropout", default=0.0)}


def _write_answers(head: Any) -> Data:
    return {**_write_transform(head), "classifier_dropout": head.dropout}


CLASSES = {
    "ModernBertModel": BODY,
    "ModernBertForMaskedLM": _masked(),
    "ModernBertForSequenceClassification": HeadClass(
        "classification", _classification, _write_classification
    ),
    "ModernBertForTokenClassification": HeadClass("token_classification", _tokens, _write_tokens),
    "ModernBertForQuestionAnswering": HeadClass("question_answering", _answers, _write_answers),
}

FAMILIES = (ConfigFamily("modernbert", _read, _write, CLASSES),)
