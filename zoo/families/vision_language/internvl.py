"""InternVL 2.5, 3 and 3.5 (Chen et al., 2024; Zhu et al., 2025): ``InternVLForConditionalGeneration``, the images of InternViT among the
tokens of Qwen2, Qwen3 or Llama, with pixel shuffle between."""

from __future__ import annotations

from specs.kinds.connector import MlpConnector
from specs.kinds.norm import LayerNorm
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.images import MEAN_POOLING, NORM_UNLESS_MEAN, patches
from zoo.families.common.layers import Layers
from zoo.families.common.template import Data, UnfitError, read
from zoo.families.common.tensors import Rule, Tensors, modules, projections, same
from zoo.families.common.transforms import Unsqueezed
from zoo.families.common.vision_language import (
    TIED,
    VISION_CONFIG,
    decoder_rules,
    image_rules,
    images_of,
    joined,
    layers_seen,
    patches_of,
    reader_config,
    reader_tensors,
)
from zoo.families.vision_language.text_configs import decoder_config, decoder_spec

_VISION_CLASS = "InternVLVisionModel"
_RATIO, _SIDES = "downsample_ratio", (1, 2, 4, 8, 16)
"""The ratio, and the sides of squares whose reciprocals are exact."""

_BIASES = f.Bool("attention_bias", default=False)
_DROPOUT = f.Equal(*(f.Float(name, default=0.0) for name in ("hidden_dropout_prob", "projection_dropout")))
_JOINED_NORM = {"kind": "layer_norm", "eps": 1e-5}

_BODY: Data = {
    "architecture": "encoder",
    "d_model": f.Int("hidden_size", default=1024),
    "position": {"kind": "learned"},
    "embedding": patches(448, 14, dropout=_DROPOUT),
    "encoder": Layers(
        f.Depth("num_hidden_layers", default=24),
        {
            "kind": "pre_norm",
            "norm": {
                "kind": f.Choice(
                    "norm_type", {"layer_norm": "layer_norm", "rms_norm": "rms_norm"}, "layer_norm"
                ),
                "eps": f.Float("layer_norm_eps", default=1e-6),
            },
            "attention": multi_head(
                16,
                dropout=f.Float("attention_dropout", default=0.0),
                bias={"query": _BIASES, "key": _BIASES, "value": _BIASES, "output": True},
                qk_norm=f.When(
                    f.Bool("use_qk_norm", default=False), {"norm": {"kind": "rms_norm"}, "over": "width"}
                ),
            ),
            "feed_forward": mlp(4096, "gelu"),
            "layer_scale": f.Float("layer_scale_init_value", default=0.1),
            "dropout": _DROPOUT,
        },
        final_norm=NORM_UNLESS_MEAN,
    ),
}
_LAYER = {
    "layernorm_before": "attention_norm",
    **projections("attention.", "q_proj k_proj v_proj projection_layer"),
    "attention.q_norm": "attention.query_norm",
    "attention.k_norm": "attention.key_norm",
    "layernorm_after": "feed_forward_norm",
    "mlp.fc1": "feed_forward.up",
    "mlp.fc2": "feed_forward.down",
}
_STORED, _OURS = "encoder.layer.{layer}.", "encoder.blocks.{layer}."
VISION = Family(
    "internvl_vision",
    Tensors(
        "internvl_vision",
        (
            Rule("embeddings.cls_token", ("embedding.class_token.weight",), Unsqueezed()),
            Rule("embeddings.position_embeddings", ("embedding.position.table.weight",), Unsqueezed()),
            *modules(
                {
                    "embeddings.patch_embeddings.projection": "embedding.patch",
                    "layernorm": "encoder.final_norm",
                }
            ),
            same(f"{_STORED}lambda_1", f"{_OURS}attention_scale.weight"),
            same(f"{_STORED}lambda_2", f"{_OURS}feed_forward_scale.weight"),
            *modules(_LAYER, _STORED, _OURS),
        ),
    ),
    _BODY,
    {_VISION_CLASS: HeadClass("none")},
    fixed={"use_absolute_position_embeddings": (True, "images need positions")},
    ignored=("use_mask_token",),
)
"""The encoder of images."""

_CONNECTOR = {
    "token": f.Int("image_token_id", default=151667),
    "activation": f.Activation("projector_hidden_act", "gelu"),
}


class _InternVL(Family):
    """An InternViT, and a decoder with the config of its own family."""

    def spec(self, config: Config, class_name: str) -> Data:
        seen = config.inner(VISION_CONFIG)
        body = VISION.body_spec(seen, _VISION_CLASS)
        stack = body["encoder"]
        layers = layers_seen(config, stack["layers"], default=-1)
        normed = bool(stack["final_norm"]) and layers == stack["layers"]
        if normed and stack["block"]["norm"]["kind"] == "rms_norm":
            seen.refuse(
                MEAN_POOLING.names[0], "must be true with norm_type rms_norm: the last norm is a layer_norm"
            )
        config.must("vision_feature_select_strategy", "default", "the class token is in no square of patches")
        connector = {
            "kind": "mlp",
            "shuffle": self._shuffle(config),
            "joined_norm": _JOINED_NORM,
            **read(_CONNECTOR, config),
        }
        config.ignore("image_seq_length")
        tied = config.bool(TIED, default=True)
        return joined(decoder_spec(config), body, connector, tied=tied, layers=layers, final_norm=normed)

    def _shuffle(self, config: Config) -> int:
        """The side of the squares of patches that are joined."""
        ratio = config.float(_RATIO, default=0.5)
        sides = {1 / side: side for side in _SIDES}
        if ratio not in sides:
            config.refuse(_RATIO, f"must be one of {', '.join(map(str, sides))}: the reference rounds others")
        return sides[ratio]

    def config(self, model: Model, class_name: str) -> Data:
        seen, connector = images_of(model), model.connector
        if not isinstance(connector, MlpConnector) or connector.hidden not in (None, model.output_width):
            raise UnfitError("connector of other layers than two as wide as the decoder")
        if not isinstance(connector.joined_norm, LayerNorm) or connector.shuffle not in _SIDES:
            raise UnfitError(
                "connector without a layer_norm of joined vectors, or of squares with other sides"
            )
        patches_of(seen)
        images = VISION.body_config(seen, _VISION_CLASS)
        del images["architectures"]
        return reader_config(
            self,
            class_name,
            model,
            images=images,
            connector=_CONNECTOR,
            text=decoder_config(model),
            vision_feature_layer=-1,
            downsample_ratio=1 / connector.shuffle,
            image_seq_length=model.vectors_per_image,
        )


_TENSORS = reader_tensors(
    "internvl",
    *image_rules(VISION.tensors.rules, "vision_tower."),
    *modules(
        {"layer_norm": "joined_norm", "linear_1": "up", "linear_2": "down"},
        "multi_modal_projector.",
        "connector.",
    ),
    *decoder_rules("language_model.model."),
    optional=("*vision_tower.*",),
)

FAMILIES = (
    _InternVL(
        "internvl",
        _TENSORS,
        classes={"InternVLForConditionalGeneration": HeadClass("language_modeling")},
    ),
)
