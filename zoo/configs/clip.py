"""The text encoder of CLIP (Radford et al., 2021), also that of Stable Diffusion: ``CLIPTextConfig``, ``CLIPConfig``."""

from __future__ import annotations

from typing import Any

from specs.head import sought_token
from specs.model import Model
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import NEUTRAL, Config
from zoo.configs.decoders import attention_of, eps_of, mlp_of, only_block, stack_of, std_of
from zoo.configs.encoders import rows_of
from zoo.configs.family import ConfigFamily, Data, HeadClass, UnfitError


def _read(config: Config, class_name: str) -> Data:
    config.ignore("projection_dim", "initializer_factor", "dropout")
    return {
        "architecture": "encoder",
        "vocab_size": config.int("vocab_size", default=49408),
        "d_model": config.int("hidden_size", default=512),
        "context_length": config.int("max_position_embeddings", default=77),
        "position": {"kind": "learned"},
        "encoder": {
            "causal": True,
            "layers": config.layers("num_hidden_layers", default=12),
            "block": {
                "kind": "pre_norm",
                "norm": {"kind": "layer_norm", "eps": config.float("layer_norm_eps", default=1e-5)},
                "attention": {
                    "kind": "multi_head",
                    "heads": config.int("num_attention_heads", default=8),
                    "dropout": config.float("attention_dropout", default=0.0),
                },
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": config.int("intermediate_size", default=2048),
                    "activation": read_activation(config, "hidden_act", "quick_gelu"),
                },
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _write(model: Model) -> Data:
    block = only_block(model)
    attention, feed_forward = attention_of(block), mlp_of(block)
    return {
        "vocab_size": model.vocab_size,
        "hidden_size": model.d_model,
        "num_hidden_layers": stack_of(model).depth,
        "num_attention_heads": attention.heads,
        "intermediate_size": feed_forward.hidden,
        "hidden_act": write_activation(feed_forward.activation),
        "attention_dropout": attention.dropout,
        "max_position_embeddings": rows_of(model),
        "layer_norm_eps": eps_of(block.norm),
        "bos_token_id": None,  # whose default may be beyond the vocabulary
        **std_of(model),
    }


def _end(config: Config) -> int:
    """The token at which a text is pooled.

    Configs of before 2023 have 2 for eos_token_id, and with it the reference takes the highest id there is, which the
    tokenizer gives to the end of a text.
    """
    end: int = config.int("eos_token_id", default=49407)
    vocab_size: int = config.int("vocab_size", default=49408)
    if not 0 <= end < vocab_size:
        config.refuse("eos_token_id", f"must be below vocab_size, which is {vocab_size}: texts end there")
    return vocab_size - 1 if end == 2 else end


def _pooled(config: Config) -> Data:
    return {"pooling": {"token": _end(config)}}


def _write_pooled(head: Any) -> Data:
    end = sought_token(head)
    if end is None:
        raise UnfitError(f"head.pooling {head.pooling}")
    return {"eos_token_id": end}


def _projected(config: Config) -> Data:
    width = config.int("projection_dim", default=512)
    return {**_pooled(config), "projection": width, "output": "text_embeds"}


def _write_projected(head: Any) -> Data:
    return {**_write_pooled(head), "projection_dim": head.projection}


TEXT = ConfigFamily(
    "clip_text_model",
    _read,
    _write,
    {
        "CLIPTextModel": HeadClass("pooled", _pooled, _write_pooled),
        "CLIPTextModelWithProjection": HeadClass("pooled", _projected, _write_projected),
    },
)


def _text_of(config: Config) -> Config:
    """The text encoder's half of a config."""
    config.must("text_config_dict", None, "it is an old second copy of text_config")
    config.ignore("vision_config", "vision_config_dict", "logit_scale_init_value")
    text = config.part("text_config") or Config({}, config.where)
    text.ignore(*NEUTRAL)
    return text


def _read_half(config: Config, class_name: str) -> Data:
    config.ignore("projection_dim", "initializer_factor")
    text = _text_of(config)
    data = _read(text, class_name)
    text.finish()
    return data


def _write_half(model: Model) -> Data:
    raise UnfitError("an image encoder: clip_text_model is the text encoder alone")


def _half_projected(config: Config) -> Data:
    width = config.int("projection_dim", default=512)
    return {**_pooled(_text_of(config)), "projection": width, "output": "text_embeds"}


CLIP = ConfigFamily(
    "clip", _read_half, _write_half, {"CLIPModel": HeadClass("pooled", _half_projected, _write_projected)}
)

FAMILIES = (TEXT, CLIP)
