"""BLIP (Li et al., 2022): ``BlipForConditionalGeneration``, captions of images by a BERT that attends to a ViT."""

from __future__ import annotations

from dataclasses import replace

from specs.kinds.vocabulary_heads import LanguageModeling
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.config import Config
from zoo.families.common.decoders import layer_norm
from zoo.families.common.encoders import BERT_RULES, NORM, RENAMED, masked_rules
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.images import SquareSide
from zoo.families.common.layers import Layers
from zoo.families.common.parts import decoder_of, encoder_of, rules_inside
from zoo.families.common.template import Data, UnfitError
from zoo.families.common.tensors import Rule, Tensors, fused, modules, projections
from zoo.families.common.transforms import STACKED, Unsqueezed
from zoo.families.common.vision_language import TEXT_CONFIG, TIED, VISION_CONFIG
from zoo.families.vision.clip import vision_body

_UNREAD = ("initializer_factor", "dropout")
"""Fields of older configs."""

_LAYER = "encoder.layers.{layer}.", "encoder.blocks.{layer}."
_IMAGES = Family(
    "blip_vision_model",
    Tensors(
        "blip_vision_model",
        (
            Rule("embeddings.class_embedding", ("embedding.class_token.weight",), Unsqueezed()),
            Rule("embeddings.position_embedding", ("embedding.position.table.weight",), Unsqueezed()),
            *modules(
                {"embeddings.patch_embedding": "embedding.patch", "post_layernorm": "encoder.final_norm"}
            ),
            *fused(
                f"{_LAYER[0]}self_attn.qkv",
                tuple(f"{_LAYER[1]}attention.{part}" for part in ("query", "key", "value")),
                STACKED,
            ),
            *modules(
                {
                    "layer_norm1": "attention_norm",
                    "self_attn.projection": "attention.output",
                    "layer_norm2": "feed_forward_norm",
                    "mlp.fc1": "feed_forward.up",
                    "mlp.fc2": "feed_forward.down",
                },
                *_LAYER,
            ),
        ),
    ),
    vision_body(
        patch_size=16,
        embedding={"image_size": SquareSide("image_size", default=384), "channels": 3},
        width=f.Int("hidden_size", default=768),
        norm=layer_norm("layer_norm_eps"),
        heads=f.Int("num_attention_heads", default=12),
        hidden=f.Int("intermediate_size", default=3072),
        activation=f.Activation("hidden_act", "gelu"),
    ),
    {"BlipVisionModel": BODY},
    ignored=("projection_dim", "num_channels", *_UNREAD),
)

_ACTIVATION = f.Activation("hidden_act", "gelu")
_DROPOUT = f.Float("hidden_dropout_prob", default=0.0)
_WORDS = Family(
    "blip_text_model",
    Tensors("blip_text_model", BERT_RULES),
    {
        "architecture": "decoder",
        "vocab_size": f.Int("vocab_size", default=30524),
        "d_model": f.Int("hidden_size", default=768),
        "context_length": f.Rows("max_position_embeddings", default=512),
        "position": {"kind": "learned"},
        "embedding": {"norm": NORM, "dropout": _DROPOUT},
        "decoder": Layers(
            f.Depth("num_hidden_layers", default=12),
            {
                "kind": "post_norm",
                "norm": NORM,
                "attention": multi_head(8, dropout=f.Float("attention_probs_dropout_prob", default=0.0)),
                "feed_forward": mlp(3072, _ACTIVATION),
                "dropout": _DROPOUT,
            },
        ),
        "initialization": f.normal(),
    },
    {
        "BlipTextLMHeadModel": HeadClass(
            "language_modeling", {"activation": _ACTIVATION, "norm": NORM, "bias": True}
        )
    },
    fixed={"is_decoder": (True, "it attends to the images"), TIED: (True, "scores use the table of tokens")},
    ignored=("projection_dim", "encoder_hidden_size", "label_smoothing", *_UNREAD),
)

_TO_IMAGES = modules(
    {
        **{
            name.replace("attention.", "crossattention.", 1): f"cross_{part}"
            for name, part in projections("attention.self.", "query key value").items()
        },
        "crossattention.output.dense": "cross_attention.output",
        "crossattention.output.LayerNorm": "cross_attention_norm",
    },
    "encoder.layer.{layer}.",
    "encoder.blocks.{layer}.",
)


def _of_decoder(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules of BERT for a decoder."""
    return tuple(
        replace(
            rule,
            parameters=tuple(
                name.replace("encoder.blocks.", "decoder.blocks.", 1) for name in rule.parameters
            ),
        )
        for rule in rules
    )


class _Blip(Family):
    """An image encoder, and a decoder that attends to it."""

    def spec(self, config: Config, class_name: str) -> Data:
        images, words = (
            config.model(VISION_CONFIG, (_IMAGES.model_type,)),
            config.model(TEXT_CONFIG, (_WORDS.model_type,)),
        )
        seen, said = _IMAGES.body_spec(images, "BlipVisionModel"), _WORDS.spec(words, "BlipTextLMHeadModel")
        config.must(TIED, True, "scores use the table of tokens")
        config.ignore(*self.ignored)
        own = {name: seen[name] for name in ("d_model", "embedding", "position")}
        return {**said, "architecture": "encoder-decoder", "encoder": {**seen["encoder"], **own}}

    def config(self, model: Model, class_name: str) -> Data:
        if model.architecture != "encoder-decoder":
            raise UnfitError(f"architecture {model.architecture}")
        if not isinstance(model.head, LanguageModeling) or not model.head.tie_embeddings:
            raise UnfitError("head.tie_embeddings: false")
        images = _IMAGES.body_config(encoder_of(model), "BlipVisionModel")
        words = _WORDS.config(decoder_of(model), "BlipTextLMHeadModel")
        return {
            "architectures": [class_name],
            "model_type": self.model_type,
            VISION_CONFIG: images,
            TEXT_CONFIG: {**words, "encoder_hidden_size": images["hidden_size"]},
            TIED: True,
        }


_TEXT = "text_decoder"
FAMILIES = (
    _Blip(
        "blip",
        Tensors(
            "blip",
            (
                *rules_inside("encoder", _IMAGES.tensors.rules, under="vision_model"),
                *rules_inside("decoder", _of_decoder((*BERT_RULES, *_TO_IMAGES)), "bert.", under=_TEXT),
            ),
            heads={
                "language_modeling": rules_inside(
                    "decoder",
                    masked_rules(
                        "cls.predictions.transform.dense",
                        "cls.predictions.transform.LayerNorm",
                        "cls.predictions.decoder",
                        "cls.predictions.bias",
                    ),
                    under=_TEXT,
                )
            },
            renamed=RENAMED,
            optional=(f"{_TEXT}.cls.predictions.decoder.*", f"{_TEXT}.cls.predictions.bias"),
            unused=(f"{_TEXT}.bert.embeddings.position_ids",),
        ),
        classes={"BlipForConditionalGeneration": HeadClass("language_modeling")},
        ignored=(
            "projection_dim",
            "logit_scale_init_value",
            "image_text_hidden_size",
            "initializer_factor",
            "label_smoothing",
        ),
    ),
)
