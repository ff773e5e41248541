"""The text encoder of CLIP (Radford et al., 2021), also that of Stable Diffusion: ``CLIPTextConfig``, ``CLIPConfig``,
``CLIPTextModel`` and ``CLIPTextModelWithProjection``.

Checkpoints of both encoders are read too, without the image encoder.
"""

from __future__ import annotations

from typing import Any

from specs.head import AtToken
from specs.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import NEUTRAL, Config
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.layers import Layers
from zoo.families.common.template import Data, Field, Place, UnfitError
from zoo.families.common.tensors import Tensors, modules, projections, same

_VOCABULARY = f.Int("vocab_size", default=49408)
_BODY = {
    "architecture": "encoder",
    "*": f.Stated(bos_token_id=None),  # whose default may be beyond the vocabulary
    "vocab_size": _VOCABULARY,
    "d_model": f.Int("hidden_size", default=512),
    "context_length": f.Rows("max_position_embeddings", default=77),
    "position": {"kind": "learned"},
    "encoder": Layers(
        f.Depth("num_hidden_layers", default=12),
        {
            "kind": "pre_norm",
            "norm": layer_norm("layer_norm_eps"),
            "attention": {
                "kind": "multi_head",
                "heads": f.Int("num_attention_heads", default=8),
                "dropout": f.Float("attention_dropout", default=0.0),
            },
            "feed_forward": {
                "kind": "mlp",
                "hidden": f.Int("intermediate_size", default=2048),
                "activation": f.Activation("hidden_act", "quick_gelu"),
            },
        },
        causal=True,
    ),
    "initialization": f.normal(),
}


class _End(Field):
    """The token at which a text is pooled.

    Configs from before 2023 set eos_token_id to 2, for which the reference takes the highest token id: the tokenizer's end of
    text.
    """

    def read(self, config: Config) -> Data:
        end: int = config.int("eos_token_id", default=49407)
        vocab_size: int = _VOCABULARY.read(config)
        if not 0 <= end < vocab_size:
            config.refuse("eos_token_id", f"must be below vocab_size, which is {vocab_size}: texts end there")
        return {"token": vocab_size - 1 if end == 2 else end}

    def write(self, value: Any, place: Place) -> Data:
        if not isinstance(value, AtToken):
            raise UnfitError(f"head.pooling {value}")
        return {"eos_token_id": value.token}


def _text_of(config: Config) -> Config:
    """The text encoder's half of a config."""
    return config.part("text_config") or Config({}, config.where)


class _EndOfText(_End):
    """The same in the config of the text encoder."""

    def read(self, config: Config) -> Data:
        return super().read(_text_of(config))


class _Whole(Family):
    """Both encoders of CLIP: reads the text encoder and skips the image encoder."""

    def body_spec(self, config: Config, class_name: str) -> Data:
        super().body_spec(config, class_name)
        text = _text_of(config)
        text.ignore(*NEUTRAL)
        data = TEXT.body_spec(text, next(iter(TEXT.classes)))
        text.finish()
        return data

    def body_config(self, model: Model, class_name: str) -> Data:
        raise UnfitError("an image encoder: clip_text_model is the text encoder alone")


_LAYER = {
    "layer_norm1": "attention_norm",
    **projections("self_attn."),
    "layer_norm2": "feed_forward_norm",
    "mlp.fc1": "feed_forward.up",
    "mlp.fc2": "feed_forward.down",
}
_TENSORS = Tensors(
    "clip",
    (
        *modules({"embeddings.token_embedding": "embedding.token", "final_layer_norm": "encoder.final_norm"}),
        same("embeddings.position_embedding.weight", "embedding.position.table.weight"),
        *modules(_LAYER, "encoder.layers.{layer}.", "encoder.blocks.{layer}."),
    ),
    prefix="text_model.",
    outside=("text_projection.",),
    bare_heads=(),
    heads={"pooled": (same("text_projection.weight", "head.projection.weight"),)},
    optional=("text_projection.weight", "vision_model.*", "visual_projection.weight", "logit_scale"),
    unused=("embeddings.position_ids",),
)


def _projected(end: Field) -> HeadClass:
    width = f.Int("projection_dim", default=512)
    return HeadClass("pooled", {"pooling": end, "projection": width, "output": "text_embeds"})


_IGNORED = ("projection_dim", "initializer_factor")
TEXT = Family(
    "clip_text_model",
    _TENSORS,
    _BODY,
    {
        "CLIPTextModel": HeadClass("pooled", {"pooling": _End()}),
        "CLIPTextModelWithProjection": _projected(_End()),
    },
    ignored=("dropout", *_IGNORED),
)
CLIP = _Whole(
    "clip",
    _TENSORS,
    classes={"CLIPModel": _projected(_EndOfText())},
    fixed={"text_config_dict": (None, "it is an old second copy of text_config")},
    ignored=("vision_config", "vision_config_dict", "logit_scale_init_value", *_IGNORED),
)
FAMILIES = (TEXT, CLIP)
