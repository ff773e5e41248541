"""Moonshine (Jeffries et al., 2024): ``MoonshineConfig``, ``MoonshineModel``, ``MoonshineForConditionalGeneration``.

The encoder reads samples of any length, and both stacks rotate part of each head.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.attention import per_head
from zoo.families.common.blocks import multi_head
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layers import Layers
from zoo.families.common.rope import RopeField, RopeParameters
from zoo.families.common.template import Data, Template
from zoo.families.common.tensors import Rule, Tensors, affine, fused, modules, projections, same, weights

_D_MODEL = f.Int("hidden_size", default=288)
_CONTEXT = f.ContextLength("max_position_embeddings", default=512, unlimited=512)
_NORM = {"kind": "layer_norm", "eps": 1e-5, "bias": False}
_STEPS = ((1, 127, 64), (2, 7, 3), (1, 3, 2))


def _convolutions(config: Config) -> list[Data]:
    """The convolutions of the stem, which depend on the model's width alone."""
    width = _D_MODEL.read(config)
    return [
        {"channels": times * width, "kernel": kernel, "stride": stride} for times, kernel, stride in _STEPS
    ]


"""The channels over d_model, the kernel and the stride of each convolution of the stem."""


_HEADS = f.Int("encoder_num_attention_heads", default=8)
_EQUAL_HEADS = f.Equal(
    _HEADS,
    *(
        f.Int(name, default=_HEADS)
        for name in (
            "encoder_num_key_value_heads",
            "decoder_num_attention_heads",
            "decoder_num_key_value_heads",
        )
    ),
    because="the reference builds both stacks with the heads of the encoder, and has no groups of query heads",
)


def _stack(side: str, feed_forward: Data, activation: str, **more: Template) -> Layers:
    """The encoder or the decoder, whose fields begin with that word."""
    bias = f.Bool("attention_bias", default=False)
    return Layers(
        f.Depth(f"{side}_num_hidden_layers", default=6),
        {
            "kind": "pre_norm",
            "norm": _NORM,
            "attention": multi_head(
                _EQUAL_HEADS,
                dropout=f.Float("attention_dropout", default=0.0),
                bias={"query": bias, "key": bias, "value": bias, "output": False},
            ),
            "feed_forward": {
                **feed_forward,
                "hidden": f.Int("intermediate_size", default=1152),
                "activation": f.Activation(f"{side}_hidden_act", activation),
            },
        },
        **more,
    )


_BODY = {
    "architecture": "encoder-decoder",
    "*": f.Stated(is_encoder_decoder=True),
    "vocab_size": f.Int("vocab_size", default=32768),
    "d_model": _D_MODEL,
    "position": RopeField(
        per_head(_D_MODEL, _HEADS),
        _CONTEXT,
        fraction=0.9,
        parameters=RopeParameters(scalings={}),
        layout="interleaved",
    ),
    "encoder": _stack(
        "encoder",
        {"kind": "mlp"},
        "gelu",
        embedding={"kind": "filtered_waveform", "convolutions": f.Derived(_convolutions)},
    ),
    "decoder": _stack("decoder", {"kind": "gated", "bias": True}, "silu", context_length=_CONTEXT),
    "initialization": f.normal(),
}


def _rules(side: str, norms: dict[str, str], *feed_forward: Rule) -> tuple[Rule, ...]:
    """The rules for the layers of a stack."""
    stored, ours = f"{side}.layers.{{layer}}.", f"{side}.blocks.{{layer}}."
    names = "q_proj k_proj v_proj o_proj"
    attentions = projections("self_attn.", names) | projections("encoder_attn.", names, "cross_attention")
    return (
        *modules(attentions, stored, ours),
        *weights(norms, stored, ours),
        *feed_forward,
        *affine(f"{stored}mlp.fc2", f"{ours}feed_forward.down"),
    )


_BLOCK = "decoder.blocks.{layer}.feed_forward."
_STEM = {"conv1": "filters", "groupnorm": "norm", "conv2": "layers.0", "conv3": "layers.1"}
_TENSORS = Tensors(
    "moonshine",
    (
        *modules(_STEM, "encoder.", "encoder_embedding."),
        *_rules(
            "encoder",
            {"input_layernorm": "attention_norm", "post_attention_layernorm": "feed_forward_norm"},
            *affine("encoder.layers.{layer}.mlp.fc1", "encoder.blocks.{layer}.feed_forward.up"),
        ),
        same("encoder.layer_norm.weight", "encoder.final_norm.weight"),
        same("decoder.embed_tokens.weight", "decoder_embedding.token.weight"),
        *_rules(
            "decoder",
            {
                "input_layernorm": "attention_norm",
                "post_attention_layernorm": "cross_attention_norm",
                "final_layernorm": "feed_forward_norm",
            },
            *fused("decoder.layers.{layer}.mlp.fc1", (f"{_BLOCK}up", f"{_BLOCK}gate")),
        ),
        same("decoder.norm.weight", "decoder.final_norm.weight"),
    ),
    prefix="model.",
    outside=("proj_out.",),
    heads={"language_modeling": (same("proj_out.weight", "head.vocabulary.weight"),)},
    optional=("proj_out.weight",),
)

FAMILIES = (
    Family(
        "moonshine",
        _TENSORS,
        _BODY,
        {
            "MoonshineForConditionalGeneration": language_modeling(tied=True, bias=False),
            "MoonshineModel": BODY,
        },
        # heads padded with zeros give the same scores
        ignored=("pad_head_dim_to_multiple_of",),
    ),
)
