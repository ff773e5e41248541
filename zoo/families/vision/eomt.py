"""EoMT (Kerssies et al., 2025), segmentation by a vision transformer alone: ``EomtConfig``, ``EomtForUniversalSegmentation``, and
``EomtDinov3Config``, ``EomtDinov3ForUniversalSegmentation``.

DINOv2 with registers, or DINOv3, whose last layers queries join; each gives a class and a mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.blocks import multi_head
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import Labels
from zoo.families.common.images import patches
from zoo.families.common.layers import Layers
from zoo.families.common.qwen_vl import AxialRopeField
from zoo.families.common.template import Template
from zoo.families.common.tensors import Rule, Tensors, affine, fused, modules, projections, same
from zoo.families.common.transforms import TransposedKernels, Unsqueezed, Zeros
from zoo.families.vision.dinov2 import dinov2_feed_forward
from zoo.families.vision.dinov3 import LAYER as DINOV3_LAYER
from zoo.families.vision.dinov3 import dinov3_block

_ACTIVATION = f.Activation("hidden_act", "gelu")
_DROPOUT = f.Float("hidden_dropout_prob", default=0.0)
_QUERIES = {"count": f.Int("num_queries", default=200), "layers": f.Int("num_blocks", default=4)}
_DINOV2 = {
    "architecture": "encoder",
    "d_model": f.Int("hidden_size", default=1024),
    "position": {"kind": "learned"},
    "embedding": patches(
        640, 16, placed="patches", registers=f.Int("num_register_tokens", default=4), dropout=_DROPOUT
    ),
    "encoder": Layers(
        f.Depth("num_hidden_layers", default=24),
        {
            "kind": "pre_norm",
            "norm": layer_norm("layer_norm_eps", default=1e-6),
            "attention": multi_head(16, dropout=f.Float("attention_dropout", default=0.0)),
            "feed_forward": dinov2_feed_forward(_ACTIVATION),
            "layer_scale": f.Float("layerscale_value", default=1.0),
        },
        queries=_QUERIES,
    ),
    "initialization": f.normal(),
}
_DINOV3 = {
    "architecture": "encoder",
    "d_model": f.Int("hidden_size", default=1024),
    "position": AxialRopeField("default", "centred", 100.0),
    "embedding": patches(640, 16, registers=f.Int("num_register_tokens", default=4), dropout=_DROPOUT),
    "encoder": Layers(
        f.Depth("num_hidden_layers", default=24), dinov3_block(16, 4096, 1e-6), queries=_QUERIES
    ),
    "initialization": f.normal(),
}
_LAYER = {
    "norm1": "attention_norm",
    **projections("attention."),
    "norm2": "feed_forward_norm",
    "mlp.fc1": "feed_forward.up",
    "mlp.fc2": "feed_forward.down",
}
_STORED, _OURS = "layers.{layer}.", "encoder.blocks.{layer}."
_GATE = f"{_OURS}feed_forward.gate.weight"
_GATED = {f"{_STORED}mlp.{name}_proj": f"{_OURS}feed_forward.{name}" for name in ("gate", "up", "down")}


def _gated(pairs: Mapping[str, str]) -> tuple[Rule, ...]:
    """The rules of modules of a feed-forward with a gate."""
    return tuple(replace(rule, beside=_GATE) for rule in modules(pairs))


_DOUBLING, _OURS_DOUBLING = "upscale_block.block.{index}.", "head.doublings.{index}."
_HEAD = (
    *modules(
        {
            "class_predictor": "classes",
            "mask_head.fc1": "vector.first",
            "mask_head.fc2": "vector.second",
            "mask_head.fc3": "vector.third",
        },
        ours="head.",
    ),
    Rule(f"{_DOUBLING}conv1.weight", (f"{_OURS_DOUBLING}matrix.weight",), TransposedKernels()),
    same(f"{_DOUBLING}conv1.bias", f"{_OURS_DOUBLING}bias"),
    same(f"{_DOUBLING}conv2.weight", f"{_OURS_DOUBLING}depthwise.weight"),
    *affine(f"{_DOUBLING}layernorm2d", f"{_OURS_DOUBLING}norm"),
)
_BESIDE = (
    Rule("embeddings.cls_token", ("embedding.class_token.weight",), Unsqueezed()),
    Rule("embeddings.register_tokens", ("embedding.register.weight",), Unsqueezed()),
    *affine("layernorm", "encoder.final_norm"),
    same("query.weight", "encoder.query.weight"),
    Rule(
        "attn_mask_probs",
        ("encoder.mask_probabilities",),
        Zeros(
            "attn_mask_probs must be zeros: queries that see the patches of their mask alone are not supported",
            "Use the checkpoint at the end of training, which lowers them to zeros.",
        ),
    ),
    same(f"{_STORED}layer_scale1.lambda1", f"{_OURS}attention_scale.weight"),
    same(f"{_STORED}layer_scale2.lambda1", f"{_OURS}feed_forward_scale.weight"),
)
_TENSORS = Tensors(
    "eomt",
    (
        same("embeddings.position_embeddings.weight", "embedding.position.table.weight"),
        *affine("embeddings.patch_embeddings.projection", "embedding.patch"),
        *_BESIDE,
        *_gated(_GATED),
        *modules(_LAYER, _STORED, _OURS),
    ),
    heads={"masks": _HEAD},
    unused=("criterion.empty_weight",),
)
_FUSED = replace(
    _TENSORS,
    rules=(
        *fused(f"{_STORED}mlp.weights_in", (f"{_OURS}feed_forward.gate", f"{_OURS}feed_forward.up")),
        *_gated({f"{_STORED}mlp.weights_out": f"{_OURS}feed_forward.down"}),
        *(rule for rule in _TENSORS.rules if not rule.beside),
    ),
)
"""The names of earlier releases, in which gate and up are one."""
_DINOV3_TENSORS = replace(
    _TENSORS,
    name="eomt_dinov3",
    rules=(
        *affine("embeddings.patch_embeddings", "embedding.patch"),
        *_BESIDE,
        *modules(DINOV3_LAYER, _STORED, _OURS),
    ),
    optional=("embeddings.mask_token",),
)


def _family(name: str, model_type: str, tensors: Tensors, body: Template, *ignored: str) -> Family:
    head = {
        "labels": Labels(),
        "doublings": f.Int("num_upscale_blocks", default=2),
        "activation": _ACTIVATION,
        "norm": {"kind": "layer_norm", "eps": 1e-6},
    }
    return Family(
        model_type,
        tensors,
        body,
        {f"{name}ForUniversalSegmentation": HeadClass("masks", head)},
        fixed={"drop_path_rate": (0.0, "training without some of the layers is not supported")},
        ignored=(
            *("class_weight", "mask_weight", "dice_weight", "no_object_weight"),  # of training
            *("train_num_points", "oversample_ratio", "importance_sample_ratio", *ignored),
        ),
    )


FAMILIES = (
    _family("Eomt", "eomt", replace(_TENSORS, other=_FUSED), _DINOV2),
    _family(
        "EomtDinov3",
        "eomt_dinov3",
        _DINOV3_TENSORS,
        _DINOV3,
        *("pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale"),
    ),
)
