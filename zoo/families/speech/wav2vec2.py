"""wav2vec 2.0 (Baevski et al., 2020), HuBERT (Hsu et al., 2021) and WavLM (Chen et al., 2021): encoders of speech.

Base models normalise the first convolution over time, and take no mask; large ones normalise the channels of every
convolution.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from specs.base.base import Component
from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.config import Config
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.layers import Layers
from zoo.families.common.template import Data, Field, FieldContext, Template
from zoo.families.common.tensors import Rule, Tensors, affine, modules, projections, same
from zoo.families.speech.wav2vec2_heads import CTC, FRAMES, HEAD_RULES, IGNORED, REFUSED, WHOLE

_KIND = f.Choice("do_stable_layer_norm", {True: "pre_norm", False: "post_norm"}, False)
NORM = layer_norm("layer_norm_eps")
_DROPOUT = f.Float("hidden_dropout", default=0.1)
_ACTIVATION = f.Activation("feat_extract_activation", "gelu")


class _FeatureConvolutions(Field):
    """The convolutions of the stem, in a list for each of their sizes."""

    sizes: Mapping[str, tuple[str, list[int]]] = {
        "channels": ("conv_dim", [512] * 7),
        "kernel": ("conv_kernel", [10, 3, 3, 3, 3, 2, 2]),
        "stride": ("conv_stride", [5, 2, 2, 2, 2, 2, 2]),
    }

    def read(self, config: Config) -> list[Data]:
        sizes = {key: config.list(name, default=default) for key, (name, default) in self.sizes.items()}
        for key, (name, _) in self.sizes.items():
            if any(type(value) is not int for value in sizes[key]):
                config.refuse(name, "must be a list of whole numbers")
            if len(sizes[key]) != len(sizes["channels"]):
                config.refuse(
                    name, f"must have as many numbers as conv_dim, which has {len(sizes['channels'])}"
                )
        return [dict(zip(sizes, values, strict=True)) for values in zip(*sizes.values(), strict=True)]

    def write(self, value: Any, context: FieldContext) -> Data:
        return {name: [getattr(layer, key) for layer in value] for key, (name, _) in self.sizes.items()}


_SUM_NORM = f.Computed(
    NORM,
    lambda norm, config: None if _KIND.read(config) == "pre_norm" else norm,
    component=Component | None,
)
"""The norm of vectors and positions together, in models whose blocks do not begin with one."""


def _summed(summed: bool, config: Config) -> bool:
    """Refuse a sum whose last output versions 4 and 5 of transformers norm differently."""
    if summed and _KIND.read(config) == "pre_norm":
        config.refuse(
            "use_weighted_layer_sum",
            "must be false with do_stable_layer_norm: versions of transformers sum different vectors",
        )
    return summed


_LAYER_SUM = f.Computed(f.Bool("use_weighted_layer_sum", default=False), _summed)
"""Whether the outputs of all layers are summed."""
_CONVOLUTION_NORM = f.Choice("feat_extract_norm", {"group": "group", "layer": "layer"}, "group")


@dataclass(frozen=True)
class Layout:
    """The parts in which data2vec differs from the others: positions, places of norms, and the norm of vectors with their positions."""

    position: Mapping[str, Template] = field(
        default_factory=lambda: {
            "kind": "convolutional",
            "kernel": f.Int("num_conv_pos_embeddings", default=128),
        }
    )
    kind: Template = _KIND
    convolution_norm: Template = _CONVOLUTION_NORM
    norm: Template = _SUM_NORM


def stem(projection_norm: Template, convolution_norm: Template = _CONVOLUTION_NORM) -> dict[str, Template]:
    """The embedding of samples, without what follows its projection."""
    return {
        "kind": "waveform",
        "convolutions": _FeatureConvolutions(),
        "convolution_norm": convolution_norm,
        "bias": f.Bool("conv_bias", default=False),
        "activation": _ACTIVATION,
        "projection_norm": projection_norm,
    }


def _body(
    projection_norm: Template, position: Template, layout: Layout, **of_encoder: Template
) -> dict[str, Template]:
    """The body; ``position`` is the attention's own position, and ``of_encoder`` are further keys of the encoder."""
    return {
        "architecture": "encoder",
        "*": f.Stated(mask_time_prob=0.0, mask_feature_prob=0.0),
        "d_model": f.Int("hidden_size", default=768),
        "position": {
            **layout.position,
            "groups": f.Int("num_conv_pos_embedding_groups", default=16),
            "activation": _ACTIVATION,
        },
        "embedding": {
            **stem(projection_norm, layout.convolution_norm),
            "norm": layout.norm,
            "dropout": _DROPOUT,
        },
        "encoder": Layers(
            f.Depth("num_hidden_layers", default=12),
            {
                "kind": layout.kind,
                "norm": NORM,
                "attention": multi_head(
                    12, dropout=f.Float("attention_dropout", default=0.1), position=position
                ),
                "feed_forward": mlp(3072, "gelu", dropout=f.Float("activation_dropout", default=0.1)),
                "dropout": _DROPOUT,
            },
            **of_encoder,
        ),
        "initialization": f.normal(),
    }


_STEM, _OURS = "feature_extractor.conv_layers.{layer}.", "embedding.layers.{layer}."
_PLACES = "encoder.pos_conv_embed.conv."
_CONVOLUTION = "embedding.position.convolution."
_LAYER = {
    **projections("attention."),
    "layer_norm": "attention_norm",
    "feed_forward.intermediate_dense": "feed_forward.up",
    "feed_forward.output_dense": "feed_forward.down",
    "final_layer_norm": "feed_forward_norm",
}
STEM_RULES = (
    *modules({"conv": "convolution", "layer_norm": "norm"}, _STEM, _OURS),
    *affine("feature_projection.layer_norm", "embedding.projection_norm"),
    *affine("feature_projection.projection", "embedding.projection"),
)


def _weight_norm(stored: str, old: str, ours: str) -> Rule:
    """Half of a kernel, under its name since torch 2.0 and before."""
    return same(
        f"{_PLACES}parametrizations.weight.{stored}", f"{_CONVOLUTION}{ours}", also=(f"{_PLACES}{old}",)
    )


_RULES = (
    *STEM_RULES,
    *affine("encoder.layer_norm", "embedding.norm"),
    *affine("encoder.layer_norm", "encoder.final_norm"),
    _weight_norm("original0", "weight_g", "magnitude"),
    _weight_norm("original1", "weight_v", "direction"),
    same(f"{_PLACES}bias", f"{_CONVOLUTION}bias"),
    *modules(_LAYER, "encoder.layers.{layer}.", "encoder.blocks.{layer}."),
)


def family(
    model_type: str,
    name: str,
    fixed: Mapping[str, tuple[Template, str]],
    rules: tuple[Rule, ...] = (),
    *,
    projection_norm: Template = NORM,
    position: Template = None,
    more: tuple[str, ...] = (),
    layout: Layout = Layout(),
) -> Family:
    body = functools.partial(_body, projection_norm, position, layout)
    summed = body(weighted_layer_sum=_LAYER_SUM)
    return Family(
        model_type,
        Tensors(
            model_type,
            (*_RULES, same("layer_weights", "encoder.layer_sum.weights"), *rules),
            prefix=f"{model_type.replace('-', '_')}.",
            outside=(
                "lm_head.", "classifier.", "projector.", "layer_weights", "quantizer.", "project_hid.",
                "project_q.",
            ),
            heads=HEAD_RULES,
            optional=(
                "masked_spec_embed", "lm_head.*", "classifier.*", "projector.*", "quantizer.*", "project_hid.*",
                "project_q.*",
            ),
        ),
        body(),
        {
            f"{name}ForCTC": CTC,
            f"{name}Model": BODY,
            f"{name}ForAudioFrameClassification": HeadClass("token_classification", FRAMES, summed),
            f"{name}ForSequenceClassification": HeadClass("classification", WHOLE, summed),
        },
        refused={f"{name}{suffix}": because for suffix, because in REFUSED.items()},
        fixed=fixed,
        ignored=(*IGNORED, *more),
    )  # fmt: skip


_GATED = {
    "kind": "relative_bias",
    "buckets": f.Int("num_buckets", default=320),
    "max_distance": f.Int("max_bucket_distance", default=800),
    "gated": True,
}
_GATES = (
    *affine(
        "encoder.layers.{layer}.attention.gru_rel_pos_linear",
        "encoder.blocks.{layer}.attention.bias_gate.projection",
    ),
    same(
        "encoder.layers.{layer}.attention.gru_rel_pos_const",
        "encoder.blocks.{layer}.attention.bias_gate.factor",
    ),
    Rule(
        "encoder.layers.0.attention.rel_attn_embed.weight",
        ("encoder.blocks.{layer}.attention.position.table.weight",),
    ),
)
WITHOUT_ADAPTERS: dict[str, tuple[Template, str]] = {
    "add_adapter": (False, "convolutions after the encoder (adapters) are not supported"),
}
FAMILIES = (
    family(
        "wav2vec2",
        "Wav2Vec2",
        {
            **WITHOUT_ADAPTERS,
            "adapter_attn_dim": (None, "adapter layers for each language (MMS) are not supported"),
        },
    ),
    family(
        "hubert",
        "Hubert",
        {"conv_pos_batch_norm": (False, "batch norm before the positions is not supported")},
        projection_norm=f.When(f.Bool("feat_proj_layer_norm", default=True), NORM),
    ),
    family("wavlm", "WavLM", WITHOUT_ADAPTERS, _GATES, position=_GATED),
    family("unispeech", "UniSpeech", {}, more=("replace_prob",)),
    family("unispeech-sat", "UniSpeechSat", {}, more=("num_clusters",)),
)
