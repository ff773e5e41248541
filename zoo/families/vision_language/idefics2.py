"""Idefics 2 (Laurençon et al., 2024): the images of a SigLIP without its head among the tokens of Mistral, with a perceiver resampler
between."""

from __future__ import annotations

from specs.kinds.resampler import ResamplerConnector
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.attention import QueryGroups
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.template import Data, FieldContext, read, write
from zoo.families.common.tensors import Tensors, projections, same, weights
from zoo.families.common.vision_language import (
    TIED,
    connector_of,
    decoder_rules,
    image_rules,
    joined,
    reader_config,
)
from zoo.families.vision.siglip import VISION as SIGLIP
from zoo.families.vision_language.idefics3 import images_of_siglip, read_images, write_images
from zoo.families.vision_language.text_configs import decoder_config, decoder_spec

_RESAMPLER_CONFIG, _WIDTH, _EPS = "perceiver_config", "hidden_size", "rms_norm_eps"
_TOKEN = {"token": f.Int("image_token_id", default=32001)}
_IMAGES = images_of_siglip("idefics2_vision", "Idefics2VisionTransformer", width=768, heads=12)


_RESAMPLER = {
    "queries": f.Int("resampler_n_latents", default=64),
    "layers": f.Depth("resampler_depth", default=3),
    "block": {
        "norm": {"kind": "rms_norm", "eps": f.Float(_EPS, default=1e-6)},
        "attention": {
            "*": QueryGroups(
                f.Int("resampler_n_heads", default=16),
                f.Int("num_key_value_heads", default=4),
                f.Int("resampler_head_dim", default=96),
            ),
            "bias": False,
            "dropout": f.Float("attention_dropout", default=0.0),
        },
        "feed_forward": {"kind": "gated", "activation": f.Activation("hidden_act", "silu"), "bias": False},
    },
}


class _Idefics2(Family):
    """An image encoder, a resampler, and a decoder with the config of its own family."""

    def spec(self, config: Config, class_name: str) -> Data:
        body = read_images(_IMAGES, config)
        decoder = decoder_spec(config)
        connector = {"kind": "resampler", **read(_TOKEN, config), **self._resampler(config, decoder)}
        tied = config.bool(TIED, default=False)
        return joined(decoder, body, connector, tied=tied)

    def _resampler(self, config: Config, decoder: Data) -> Data:
        """The resampler, in the width of the decoder; if a config states another, the decoder's norms are used."""
        part = config.inner(_RESAMPLER_CONFIG)
        width, block = decoder["d_model"], decoder["decoder"]["block"]
        resampler: Data = read(_RESAMPLER, part)
        resampler["block"]["feed_forward"]["hidden"] = 4 * width
        if part.int(_WIDTH, default=4096) != width:
            resampler["block"]["norm"] = block["norm"]
        return {**resampler, "projection": block["feed_forward"]}

    def config(self, model: Model, class_name: str) -> Data:
        connector = connector_of(model, ResamplerConnector)
        images = write_images(_IMAGES, model)
        context = FieldContext.of(model, "connector")
        resampler = {
            "model_type": "idefics2_perceiver",
            _WIDTH: model.output_width,
            **write(_RESAMPLER, connector, context),
        }
        return reader_config(
            self,
            class_name,
            model,
            images=images,
            connector=_TOKEN,
            text=decoder_config(model),
            perceiver_config=resampler,
        )


_MLP = {"gate_proj": "gate", "up_proj": "up", "down_proj": "down"}
_LAYER = {
    "input_latents_norm": "query_norm",
    "input_context_norm": "vector_norm",
    **projections("self_attn.", "q_proj k_proj v_proj o_proj"),
    "post_attention_layernorm": "feed_forward_norm",
    **{f"mlp.{theirs}": f"feed_forward.{ours}" for theirs, ours in _MLP.items()},
}
_RESAMPLED = "model.connector.perceiver_resampler."

FAMILIES = (
    _Idefics2(
        "idefics2",
        Tensors(
            "idefics2",
            (
                *image_rules(SIGLIP.tensors.rules, "model.vision_model."),
                *weights(_MLP, "model.connector.modality_projection.", "connector.projection."),
                same(f"{_RESAMPLED}latents", "connector.queries.weight"),
                *weights(_LAYER, f"{_RESAMPLED}layers.{{layer}}.", "connector.layers.{layer}."),
                same(f"{_RESAMPLED}norm.weight", "connector.final_norm.weight"),
                *decoder_rules("model.text_model."),
            ),
            heads={"language_modeling": (same("lm_head.weight", "head.vocabulary.weight"),)},
            optional=("lm_head.weight",),
        ),
        classes={"Idefics2ForConditionalGeneration": HeadClass("language_modeling")},
    ),
)
