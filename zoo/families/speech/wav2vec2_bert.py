"""wav2vec2-BERT (Barrault et al., 2023): ``Wav2Vec2BertConfig`` and its models, whose conformer blocks read spectrograms."""

from __future__ import annotations

from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY, Labels
from zoo.families.common.layers import Layers
from zoo.families.common.tensors import Tensors, affine, modules, pointwise, projections, weights
from zoo.families.speech.wav2vec2_heads import HEAD_RULES, IGNORED

_NORM = layer_norm("layer_norm_eps")
_DROPOUT = f.Float("hidden_dropout", default=0.0)
_ACTIVATION = f.Activation("hidden_act", "swish")


def _body(**of_encoder: Any) -> dict[str, Any]:
    """The body; ``of_encoder`` are further keys of the encoder."""
    return {
        "architecture": "encoder",
        "*": f.Stated(mask_time_prob=0.0, mask_feature_prob=0.0),
        "d_model": f.Int("hidden_size", default=1024),
        "position": {
            "kind": "relative_key",
            "before": f.Int("left_max_position_embeddings", default=64),
            "after": f.Int("right_max_position_embeddings", default=8),
        },
        "embedding": {
            "kind": "frames",
            "width": f.Int("feature_projection_input_dim", default=160),
            "norm": _NORM,
            "dropout": _DROPOUT,
        },
        "encoder": Layers(
            f.Depth("num_hidden_layers", default=24),
            {
                "kind": "conformer",
                "norm": _NORM,
                "attention": multi_head(16, dropout=f.Float("attention_dropout", default=0.0)),
                "convolution": {
                    "kernel": f.Int("conv_depthwise_kernel_size", default=31),
                    "causal": True,
                    "activation": _ACTIVATION,
                    "norm": _NORM,
                    "bias": False,
                },
                "feed_forward": mlp(4096, _ACTIVATION, dropout=f.Float("activation_dropout", default=0.0)),
                "dropout": _DROPOUT,
            },
            **of_encoder,
        ),
        "initialization": f.normal(),
    }


_STORED, _OURS = "encoder.layers.{layer}.", "encoder.blocks.{layer}."
CONFORMER_LAYER = {
    **projections("self_attn.", "linear_q linear_k linear_v linear_out"),
    "ffn1.intermediate_dense": "first_feed_forward.up",
    "ffn1.output_dense": "first_feed_forward.down",
    "ffn2.intermediate_dense": "feed_forward.up",
    "ffn2.output_dense": "feed_forward.down",
    "ffn1_layer_norm": "first_feed_forward_norm",
    "self_attn_layer_norm": "attention_norm",
    "conv_module.layer_norm": "convolution_norm",
    "ffn2_layer_norm": "feed_forward_norm",
    "final_layer_norm": "output_norm",
}
_LAYER = {**CONFORMER_LAYER, "conv_module.depthwise_layer_norm": "convolution.norm"}
_MATRICES = {
    "self_attn.distance_embedding": "attention.position.table",
    "conv_module.depthwise_conv": "convolution.depthwise",
}
_HEADS = ("lm_head.", "classifier.", "projector.", "layer_weights")
_FRAMES = {"labels": Labels()}
_WHOLE = {
    **_FRAMES,
    "activation": "identity",
    "dense_width": f.Int("classifier_proj_size", default=768),
    "transform": "tokens",
    "pooling": "mean",
}
_TENSORS = Tensors(
    "wav2vec2-bert",
    (
        *affine("feature_projection.layer_norm", "embedding.norm"),
        *affine("feature_projection.projection", "embedding.projection"),
        *modules(_LAYER, _STORED, _OURS),
        *weights(_MATRICES, _STORED, _OURS),
        *pointwise(f"{_STORED}conv_module.pointwise_conv1", f"{_OURS}convolution.input"),
        *pointwise(f"{_STORED}conv_module.pointwise_conv2", f"{_OURS}convolution.output"),
    ),
    prefix="wav2vec2_bert.",
    outside=_HEADS,
    heads=HEAD_RULES,
    optional=("masked_spec_embed", "lm_head.*", "classifier.*", "projector.*"),
)

FAMILIES = (
    Family(
        "wav2vec2-bert",
        _TENSORS,
        _body(),
        {
            "Wav2Vec2BertForCTC": HeadClass(
                "ctc",
                {
                    "labels": f.Int("vocab_size", default=32),
                    "blank": f.Int("pad_token_id", default=0),
                    "dropout": f.Float("final_dropout", default=0.1),
                },
            ),
            "Wav2Vec2BertModel": BODY,
            "Wav2Vec2BertForAudioFrameClassification": HeadClass("token_classification", _FRAMES),
            "Wav2Vec2BertForSequenceClassification": HeadClass("classification", _WHOLE),
        },
        refused={"Wav2Vec2BertForXVector": "whose head has layers over time (TDNN)"},
        fixed={
            "position_embeddings_type": (
                "relative_key",
                "positions of other kinds are not published with this family",
            ),
            "add_adapter": (False, "convolutions after the encoder (adapters) are not supported"),
            "use_intermediate_ffn_before_adapter": (False, "it belongs to adapters"),
            "use_weighted_layer_sum": (False, "sums of layers are not supported for conformer blocks"),
        },
        ignored=(
            *(name for name in IGNORED if name != "use_weighted_layer_sum"),
            *("adapter_act", "conformer_conv_dropout", "max_source_positions", "rotary_embedding_base"),
        ),
    ),
)
