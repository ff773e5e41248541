"""DINOv2 (Oquab et al., 2023), and with registers (Darcet et al., 2023), at the image size of the config.

At other image sizes the reference interpolates the positions.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.held import ATTENTION_OF_IMAGES, also_named, unfused
from zoo.families.common.images import patches
from zoo.families.common.layers import Layers
from zoo.families.common.template import Field, Template
from zoo.families.common.tensors import Rule, Tensors, fused, modules, projections, same
from zoo.families.common.transforms import Unsqueezed

_WIDTH = f.Int("hidden_size", default=768)
_RATIO = f.Int("mlp_ratio", default=4)


def _gated_width(d_model: int, ratio: int) -> int:
    """The width of a gated feed-forward: two thirds of the multiple, rounded up to a multiple of 8."""
    return (int(d_model * ratio * 2 / 3) + 7) // 8 * 8


_BIAS = f.Bool("qkv_bias", default=True)
_DROPOUT = f.Float("hidden_dropout_prob", default=0.0)


def dinov2_feed_forward(activation: Template) -> Field:
    """A feed-forward with a gate or without."""
    return f.Kinds(
        f.Bool("use_swiglu_ffn", default=False),
        {
            True: {"kind": "gated", "hidden": f.Multiple(_RATIO, _WIDTH, _gated_width), "activation": "silu"},
            False: mlp(f.Multiple(_RATIO, _WIDTH), activation),
        },
    )


def _body(patch_size: int, **more: Template) -> dict[str, Template]:
    """The body with a family's default patch size; ``more`` are keys of the embedding."""
    return {
        "architecture": "encoder",
        "d_model": _WIDTH,
        "position": {"kind": "learned"},
        "embedding": patches(224, patch_size, dropout=_DROPOUT, **more),
        "encoder": Layers(
            f.Depth("num_hidden_layers", default=12),
            {
                "kind": "pre_norm",
                "norm": layer_norm("layer_norm_eps", default=1e-6),
                "attention": multi_head(
                    12,
                    dropout=f.Float("attention_probs_dropout_prob", default=0.0),
                    bias={"query": _BIAS, "key": _BIAS, "value": _BIAS, "output": True},
                ),
                "feed_forward": dinov2_feed_forward("gelu"),
                "layer_scale": f.Float("layerscale_value", default=1.0),
            },
        ),
        "initialization": f.normal(),
    }


_LAYER = {
    "norm1": "attention_norm",
    **projections("attention.attention.", "query key value"),
    "attention.output.dense": "attention.output",
    "norm2": "feed_forward_norm",
    "mlp.fc1": "feed_forward.up",
    "mlp.fc2": "feed_forward.down",
}
_STORED, _OURS = "encoder.layer.{layer}.", "encoder.blocks.{layer}."
_GATE = f"{_OURS}feed_forward.gate.weight"
_RULES = (
    Rule("embeddings.cls_token", ("embedding.class_token.weight",), Unsqueezed()),
    Rule("embeddings.register_tokens", ("embedding.register.weight",), Unsqueezed()),
    Rule("embeddings.position_embeddings", ("embedding.position.table.weight",), Unsqueezed()),
    *modules(
        {"embeddings.patch_embeddings.projection": "embedding.patch", "layernorm": "encoder.final_norm"}
    ),
    *fused(f"{_STORED}mlp.weights_in", (f"{_OURS}feed_forward.gate", f"{_OURS}feed_forward.up")),
    *(
        same(f"{_STORED}mlp.weights_out.{leaf}", f"{_OURS}feed_forward.down.{leaf}", beside=_GATE)
        for leaf in ("weight", "bias")
    ),
    same(f"{_STORED}layer_scale1.lambda1", f"{_OURS}attention_scale.weight"),
    same(f"{_STORED}layer_scale2.lambda1", f"{_OURS}feed_forward_scale.weight"),
    *modules(_LAYER, _STORED, _OURS),
)
_CLASSIFIER = "whose classifier reads the class token beside the mean of the patches"


_GATED = {f"{_STORED}mlp.{part}_proj": f"{_OURS}feed_forward.{part}" for part in ("gate", "up")}
_IN_MEMORY = (*ATTENTION_OF_IMAGES, ("weights_out", "down_proj"))


def _tensors(model_type: str) -> Tensors:
    """The tensors, stored and in memory, where the gate is a separate module."""
    stored = Tensors(
        model_type,
        also_named(_RULES, *_IN_MEMORY),
        prefix=f"{model_type}.",
        outside=("classifier.",),
        optional=("classifier.*", "embeddings.mask_token"),
    )
    return replace(stored, other=unfused(stored, _GATED))


def _family(model_type: str, name: str, body: Template) -> Family:
    return Family(
        model_type,
        _tensors(model_type),
        body,
        {f"{name}Model": HeadClass("pooled", {"pooling": "first"})},
        refused={f"{name}ForImageClassification": _CLASSIFIER},
        fixed={"drop_path_rate": (0.0, "training without some of the layers is not supported")},
        ignored=(
            *("hidden_act", "use_mask_token"),  # of the feed-forward without a gate, and of training
            *("apply_layernorm", "reshape_hidden_states", "out_features", "out_indices", "stage_names"),
        ),
    )


FAMILIES = (
    _family("dinov2", "Dinov2", {**_body(14), "*": f.Stated(use_mask_token=False)}),
    _family(
        "dinov2_with_registers",
        "Dinov2WithRegisters",
        _body(16, registers=f.Int("num_register_tokens", default=4)),
    ),
)
