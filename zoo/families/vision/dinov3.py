"""DINOv3's vision transformers (Siméoni et al., 2025), at the image size of the config: ``DINOv3ViTConfig``,
``DINOv3ViTModel``.

At other image sizes the reference spreads the positions over them.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import multi_head
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.held import also_named
from zoo.families.common.images import patches
from zoo.families.common.layers import Layers
from zoo.families.common.template import Data
from zoo.families.common.tensors import Rule, Tensors, modules, projections, same
from zoo.families.common.transforms import Unsqueezed


def dinov3_block(heads: int, hidden: int, eps: float) -> Data:
    """The template of a block, with a family's defaults."""
    feed_forward = {
        "hidden": f.Int("intermediate_size", default=hidden),
        "activation": f.Activation("hidden_act", "gelu"),
        "bias": f.Bool("mlp_bias", default=True),
    }
    biases = {"query": "query_bias", "key": "key_bias", "value": "value_bias", "output": "proj_bias"}
    return {
        "kind": "pre_norm",
        "norm": layer_norm("layer_norm_eps", default=eps),
        "attention": multi_head(
            heads,
            dropout=f.Float("attention_dropout", default=0.0),
            bias={name: f.Bool(field, default=name != "key") for name, field in biases.items()},
        ),
        "feed_forward": f.Kinds(
            f.Bool("use_gated_mlp", default=False),
            {True: {"kind": "gated", **feed_forward}, False: {"kind": "mlp", **feed_forward}},
        ),
        "layer_scale": f.Float("layerscale_value", default=1.0),
    }


_BODY = {
    "architecture": "encoder",
    "d_model": f.Int("hidden_size", default=384),
    "position": {"kind": "axial_rope", "theta": f.Float("rope_theta", default=100.0)},
    "embedding": patches(224, 16, registers=f.Int("num_register_tokens", default=0)),
    "encoder": Layers(f.Depth("num_hidden_layers", default=12), dinov3_block(6, 1536, 1e-5)),
    "initialization": f.normal(),
}
LAYER = {
    "norm1": "attention_norm",
    **projections("attention.", "q_proj k_proj v_proj o_proj"),
    "norm2": "feed_forward_norm",
    "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.up",
    "mlp.down_proj": "feed_forward.down",
}
_STORED, _OURS = "layer.{layer}.", "encoder.blocks.{layer}."
_TENSORS = Tensors(
    "dinov3_vit",
    (
        Rule("embeddings.cls_token", ("embedding.class_token.weight",), Unsqueezed()),
        Rule("embeddings.register_tokens", ("embedding.register.weight",), Unsqueezed()),
        *modules({"embeddings.patch_embeddings": "embedding.patch", "norm": "encoder.final_norm"}),
        *also_named(
            (
                same(f"{_STORED}layer_scale1.lambda1", f"{_OURS}attention_scale.weight"),
                same(f"{_STORED}layer_scale2.lambda1", f"{_OURS}feed_forward_scale.weight"),
                *modules(LAYER, _STORED, _OURS),
            ),
            ("^", "model."),
        ),
    ),
    optional=("embeddings.mask_token", "embeddings.register_tokens"),
)

FAMILIES = (
    Family(
        "dinov3_vit",
        _TENSORS,
        _BODY,
        {"DINOv3ViTModel": HeadClass("pooled", {"pooling": "first"})},
        fixed={"drop_path_rate": (0.0, "training without some of the layers is not supported")},
        ignored=(
            *("pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale"),  # of training
            *("apply_layernorm", "reshape_hidden_states", "out_features", "out_indices", "stage_names"),
        ),
    ),
)
