"""wav2vec2-Conformer (Wang et al., 2020): ``Wav2Vec2ConformerConfig`` and its models: the samples of wav2vec 2.0 in conformer blocks.

Rotary positions turn the input of queries and keys, not their projections, and the convolution over positions is stored, but
read by no model.
"""

from __future__ import annotations

import math
from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.layers import Layers
from zoo.families.common.template import UnfitError
from zoo.families.common.tensors import Tensors, affine, modules, pointwise, same, weights
from zoo.families.speech.wav2vec2 import STEM_RULES, stem
from zoo.families.speech.wav2vec2_bert import CONFORMER_LAYER
from zoo.families.speech.wav2vec2_heads import CTC, FRAMES, HEAD_RULES, IGNORED, REFUSED, WHOLE

_NORM = {"kind": "layer_norm", "eps": 1e-5}
_ACTIVATION = f.Activation("hidden_act", "gelu")
_DROPOUT = f.Float("hidden_dropout", default=0.1)


def _whole(theta: float) -> int:
    if theta % 1:
        raise UnfitError(f"position.theta: {theta}, which must be whole")
    return int(theta)


_POSITION = f.Kinds(
    f.Choice("position_embeddings_type", {word: word for word in ("relative", "rotary", None)}, "relative"),
    {
        "rotary": {
            "kind": "rope",
            "rotates": "input",
            "theta": f.Mapped(f.Int("rotary_embedding_base", default=10000), float, _whole),
        },
        None: {"kind": "none"},
        "relative": {"kind": "relative_sinusoidal"},
    },
)
"""Sinusoids of distances, a rotation of the input, or no position."""

_UNREAD_CONVOLUTION = {"num_conv_pos_embedding_groups": lambda context: math.gcd(16, context.model.d_model)}
"""The field of the convolution over positions, which the reference builds and stores but does not compute with."""

_BODY: dict[str, Any] = {
    "architecture": "encoder",
    "*": f.Stated(mask_time_prob=0.0, mask_feature_prob=0.0, **_UNREAD_CONVOLUTION),
    "d_model": f.Int("hidden_size", default=768),
    "position": _POSITION,
    "embedding": {**stem(_NORM), "norm": None, "dropout": _DROPOUT},
    "encoder": Layers(
        f.Depth("num_hidden_layers", default=12),
        {
            "kind": "conformer",
            "norm": _NORM,
            "attention": multi_head(12, dropout=f.Float("attention_dropout", default=0.1)),
            "convolution": {
                "kernel": f.Int("conv_depthwise_kernel_size", default=31),
                "activation": _ACTIVATION,
                "bias": False,
            },
            "feed_forward": mlp(3072, _ACTIVATION, dropout=f.Float("activation_dropout", default=0.1)),
            "dropout": _DROPOUT,
        },
        final_norm=True,
    ),
    "initialization": f.normal(),
}


_HEADS = ("lm_head.", "classifier.", "projector.", "quantizer.", "project_hid.", "project_q.")
_STORED, _OURS = "encoder.layers.{layer}.", "encoder.blocks.{layer}."
_MATRICES = {
    "self_attn.linear_pos": "attention.position.projection",
    "conv_module.depthwise_conv": "convolution.depthwise",
}
_VECTORS = {
    "self_attn.pos_bias_u": "attention.position.content_bias",
    "self_attn.pos_bias_v": "attention.position.distance_bias",
    "conv_module.batch_norm.running_mean": "convolution.norm.mean",
    "conv_module.batch_norm.running_var": "convolution.norm.variance",
}
_TENSORS = Tensors(
    "wav2vec2-conformer",
    (
        *STEM_RULES,
        *affine("encoder.layer_norm", "encoder.final_norm"),
        *modules({**CONFORMER_LAYER, "conv_module.batch_norm": "convolution.norm"}, _STORED, _OURS),
        *weights(_MATRICES, _STORED, _OURS),
        *(same(f"{_STORED}{theirs}", f"{_OURS}{ours}") for theirs, ours in _VECTORS.items()),
        *pointwise(f"{_STORED}conv_module.pointwise_conv1", f"{_OURS}convolution.input"),
        *pointwise(f"{_STORED}conv_module.pointwise_conv2", f"{_OURS}convolution.output"),
    ),
    prefix="wav2vec2_conformer.",
    outside=_HEADS,
    heads=HEAD_RULES,
    optional=("masked_spec_embed", *(f"{prefix}*" for prefix in _HEADS)),
    unused=(
        "encoder.pos_conv_embed.*",
        "encoder.embed_positions.inv_freq",
        "encoder.layers.*.conv_module.batch_norm.num_batches_tracked",
    ),
)

FAMILIES = (
    Family(
        "wav2vec2-conformer",
        _TENSORS,
        _BODY,
        {
            "Wav2Vec2ConformerForCTC": CTC,
            "Wav2Vec2ConformerModel": BODY,
            "Wav2Vec2ConformerForAudioFrameClassification": HeadClass("token_classification", FRAMES),
            "Wav2Vec2ConformerForSequenceClassification": HeadClass("classification", WHOLE),
        },
        refused={f"Wav2Vec2Conformer{suffix}": because for suffix, because in REFUSED.items()},
        fixed={
            "layer_norm_eps": (1e-5, "the norms of its blocks have this number whatever the config states"),
            "add_adapter": (False, "convolutions after the encoder (adapters) are not supported"),
            "use_weighted_layer_sum": (False, "sums of layers are not supported for conformer blocks"),
        },
        ignored=(
            *(name for name in IGNORED if name != "use_weighted_layer_sum"),
            *("conformer_conv_dropout", "max_source_positions", "rotary_embedding_base"),
            *("num_conv_pos_embeddings", "num_conv_pos_embedding_groups"),
        ),
    ),
)
