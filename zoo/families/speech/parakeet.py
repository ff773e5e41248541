"""Parakeet (NVIDIA, 2024) with CTC: ``ParakeetCTCConfig``, whose encoder is a FastConformer (Rekesh et al., 2023)."""

from __future__ import annotations

from typing import Any

from specs.kinds.head import NoHead
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.layers import Layers
from zoo.families.common.template import Data
from zoo.families.common.tensors import Rule, Tensors, affine, modules, pointwise, projections, same

ENCODER_CONFIG, ENCODER_CLASS = "encoder_config", "ParakeetEncoder"
_MOST_CONVOLUTIONS = 16
_CONVOLUTIONS = f.Mapped(
    f.Checked(
        f.Int("subsampling_factor", default=8),
        lambda factor: factor >= 2 and not factor & (factor - 1),
        "must be a power of 2",
    ),
    lambda factor: factor.bit_length() - 1,
    lambda depth: 2**depth,
)
"""The number of convolutions of the stem, as two to its power."""
_ACTIVATION = f.Activation("hidden_act", "silu")
_NORM = {"kind": "layer_norm", "eps": 1e-5}

_BODY: dict[str, Any] = {
    "architecture": "encoder",
    "d_model": f.Int("hidden_size", default=1024),
    "context_length": f.Int("max_position_embeddings", default=5000),
    "position": {"kind": "relative_sinusoidal", "dropout": f.Float("dropout_positions", default=0.0)},
    "embedding": {
        "kind": "subsampled_spectrogram",
        "mel_bins": f.Int("num_mel_bins", default=80),
        "channels": f.Int("subsampling_conv_channels", default=256),
        "convolutions": _CONVOLUTIONS,
        "kernel": f.Int("subsampling_conv_kernel_size", default=3),
        "stride": f.Int("subsampling_conv_stride", default=2),
        "scale": f.Choice("scale_input", {True: "sqrt_d_model", False: None}, True),
        "dropout": f.Float("dropout", default=0.1),
    },
    "encoder": Layers(
        f.Depth("num_hidden_layers", default=24),
        {
            "kind": "conformer",
            "norm": _NORM,
            "attention": multi_head(
                8,
                dropout=f.Float("attention_dropout", default=0.1),
                bias=f.Bias("attention_bias", default=True),
            ),
            "convolution": {
                "kernel": f.Int("conv_kernel_size", default=9),
                "activation": _ACTIVATION,
                "bias": f.Bool("convolution_bias", default=True),
            },
            "feed_forward": mlp(
                4096,
                _ACTIVATION,
                bias=f.Bool("attention_bias", default=True),
                dropout=f.Float("activation_dropout", default=0.1),
            ),
        },
    ),
    "initialization": f.normal(),
}


def _convolution_rules(index: int) -> tuple[Rule, ...]:
    """One convolution of the stem: the stored list counts activations too, and the first has no matrix after it."""
    stored, ours = "subsampling.layers.", f"embedding.layers.{index}."
    if index == 0:
        return affine(f"{stored}0", f"{ours}convolution")
    return (
        *affine(f"{stored}{3 * index - 1}", f"{ours}convolution"),
        *affine(f"{stored}{3 * index}", f"{ours}pointwise"),
    )


_STORED, _OURS = "layers.{layer}.", "encoder.blocks.{layer}."
_LAYER = {
    **projections("self_attn.", "q_proj k_proj v_proj o_proj"),
    "self_attn.relative_k_proj": "attention.position.projection",
    "feed_forward1.linear1": "first_feed_forward.up",
    "feed_forward1.linear2": "first_feed_forward.down",
    "feed_forward2.linear1": "feed_forward.up",
    "feed_forward2.linear2": "feed_forward.down",
    "norm_feed_forward1": "first_feed_forward_norm",
    "norm_self_att": "attention_norm",
    "norm_conv": "convolution_norm",
    "norm_feed_forward2": "feed_forward_norm",
    "norm_out": "output_norm",
    "conv.depthwise_conv": "convolution.depthwise",
    "conv.norm": "convolution.norm",
}
_VECTORS = {
    "self_attn.bias_u": "attention.position.content_bias",
    "self_attn.bias_v": "attention.position.distance_bias",
    "conv.norm.running_mean": "convolution.norm.mean",
    "conv.norm.running_var": "convolution.norm.variance",
}
_TENSORS = Tensors(
    "parakeet",
    (
        *(rule for index in range(_MOST_CONVOLUTIONS) for rule in _convolution_rules(index)),
        *affine("subsampling.linear", "embedding.projection"),
        *modules(_LAYER, _STORED, _OURS),
        *(same(f"{_STORED}{theirs}", f"{_OURS}{ours}") for theirs, ours in _VECTORS.items()),
        *pointwise(f"{_STORED}conv.pointwise_conv1", f"{_OURS}convolution.input"),
        *pointwise(f"{_STORED}conv.pointwise_conv2", f"{_OURS}convolution.output"),
    ),
    prefix="encoder.",
    outside=("ctc_head.",),
    heads={"ctc": pointwise("ctc_head", "head.labels")},
    optional=("ctc_head.*",),
    unused=("layers.*.conv.norm.num_batches_tracked",),
)


class _Encoder(Family):
    def body_spec(self, config: Config, class_name: str) -> Data:
        data = super().body_spec(config, class_name)
        stem: Data = data["embedding"]
        step = stem["stride"] ** stem["convolutions"]
        if stem["mel_bins"] % step:
            config.refuse("num_mel_bins", f"must be a multiple of {step}, the step of all convolutions")
        return data


_ENCODER = _Encoder(
    "parakeet_encoder",
    _TENSORS,
    _BODY,
    {ENCODER_CLASS: BODY},
    fixed={
        "num_key_value_heads": (
            f.Int("num_attention_heads", default=8),
            "every head has keys and values of its own",
        )
    },
    ignored=("layerdrop",),
)


class _WithHead(Family):
    """A config that holds the encoder's config."""

    def body_spec(self, config: Config, class_name: str) -> Data:
        encoder = config.inner(ENCODER_CONFIG)
        data = _ENCODER.body_spec(encoder, ENCODER_CLASS)
        config.ignore(*self.ignored)
        return data

    def body_config(self, model: Model, class_name: str) -> Data:
        encoder = _ENCODER.body_config(model.model_copy(update={"head": NoHead()}), ENCODER_CLASS)
        del encoder["architectures"]
        return {"architectures": [class_name], "model_type": self.model_type, ENCODER_CONFIG: encoder}


FAMILIES = (
    _ENCODER,
    _WithHead(
        "parakeet_ctc",
        _TENSORS,
        classes={
            "ParakeetForCTC": HeadClass(
                "ctc",
                {
                    "labels": f.Int("vocab_size", default=1025),
                    "blank": f.Int("pad_token_id", default=1024),
                },
            )
        },
        ignored=("ctc_loss_reduction", "ctc_zero_infinity"),
    ),
)
