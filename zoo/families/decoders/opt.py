"""OPT (Zhang et al., 2022): ``OPTConfig``, ``OPTModel`` and its heads.

OPT-350m has an embedding narrower than the model, with a projection on either side.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.config import Config
from zoo.families.common.decoders import decoder_heads, decoder_tensors
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Layers
from zoo.families.common.template import Data
from zoo.families.common.tensors import modules, projections, same

_D_MODEL = f.Int("hidden_size", default=768)
_WIDTH = f.TableWidth("word_embed_proj_dim", default=_D_MODEL, d_model=_D_MODEL)
_BEFORE = f.Choice("do_layer_norm_before", {True: "pre_norm", False: "post_norm"}, True)
_AFFINE = f.Bool("layer_norm_elementwise_affine", default=True)
_PROJECTION = {"bias": False, "place": "first"}


_FINAL_NORM = f.Computed(
    f.Bool("_remove_final_layer_norm", default=False),
    lambda removed, config: _BEFORE.read(config) == "pre_norm" and not removed,
    lambda final, context: not context.block.output_is_normalised and not context.stack.ends_with_norm,
)
"""Whether a final norm ends the stack: with norms before branches, unless it is removed."""


def _projected(config: Config) -> bool:
    return bool(_WIDTH.read(config) is not None)


def _unprojected(config: Config) -> Data:
    if _projected(config):
        config.refuse(
            "word_embed_proj_dim",
            f"must be hidden_size, which is {_D_MODEL.read(config)}: a projection after the last layer is supported "
            "only in OPTForCausalLM",
            "Set architectures to OPTForCausalLM.",
        )
    return {}


_BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=50272),
    "d_model": _D_MODEL,
    "context_length": f.Int("max_position_embeddings", default=2048),
    "position": {"kind": "learned", "offset": 2},
    "embedding": {
        "width": _WIDTH,
        "projection": f.Derived(lambda config: _PROJECTION if _projected(config) else None),
    },
    "decoder": Layers(
        f.Depth("num_hidden_layers", default=12),
        {
            "kind": _BEFORE,
            "norm": {"kind": "layer_norm", "eps": 1e-5, "weight": _AFFINE, "bias": _AFFINE},
            "attention": multi_head(
                12,
                dropout=f.Float("attention_dropout", default=0.0),
                bias=f.Bias("enable_bias", default=True),
            ),
            "feed_forward": mlp(
                f.Int("ffn_dim", default=3072),
                f.Activation("activation_function", "relu"),
                bias=f.Bool("enable_bias", default=True),
            ),
            "dropout": f.Float("dropout", default=0.1),
        },
        final_norm=_FINAL_NORM,
    ),
    "initialization": f.normal("init_std"),
}


def _classes() -> dict[str, HeadClass]:
    without = ("ForTokenClassification",)
    classes = decoder_classes("OPT", tied=True, without=without, projection=f.Derived(_projected))
    check = {"*": f.Derived(_unprojected)}
    return {
        name: head if name == "OPTForCausalLM" else HeadClass(head.kind, {**head.head, **check})
        for name, head in classes.items()
    }


_LAYER = {
    "self_attn_layer_norm": "attention_norm",
    **projections("self_attn."),
    "final_layer_norm": "feed_forward_norm",
    "fc1": "feed_forward.up",
    "fc2": "feed_forward.down",
}
_HEADS = decoder_heads()
_PROJECTED = same("decoder.project_out.weight", "head.projection.weight")
_TENSORS = decoder_tensors(
    "opt",
    "model.",
    *modules({"decoder.embed_tokens": "embedding.token", "decoder.final_layer_norm": "decoder.final_norm"}),
    same("decoder.embed_positions.weight", "embedding.position.table.weight"),
    same("decoder.project_in.weight", "embedding.projection.weight"),
    *modules(_LAYER, "decoder.layers.{layer}.", "decoder.blocks.{layer}."),
    heads={**_HEADS, "language_modeling": (_PROJECTED, *_HEADS["language_modeling"])},
    renamed={f"decoder.layer_norm.{leaf}": f"decoder.final_layer_norm.{leaf}" for leaf in ("weight", "bias")},
)

FAMILIES = (Family("opt", _TENSORS, _BODY, _classes(), ignored=("layerdrop", "activation_dropout")),)
