"""LiLT (Wang et al., 2022): ``LiltConfig``, ``LiltModel`` and its heads.

RoBERTa, beside whose layers a narrower stream of the places of tokens on their page passes; the scores of both are added.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.encoders import FIXED, IGNORED, NORM, BertFields, classifiers, pooler
from zoo.families.common.family import Family
from zoo.families.common.template import Field
from zoo.families.common.tensors import modules, same
from zoo.families.encoders.roberta import TENSORS

_WIDTH, _HIDDEN = f.Int("hidden_size", default=768), f.Int("intermediate_size", default=3072)
_HEADS = f.Int("num_attention_heads", default=12)
_PADDING = f.after_padding(0)


def _shrunk(width: Field, ratio: int, config: Config) -> int:
    """A width of the text, divided by ``channel_shrink_ratio``."""
    head = _WIDTH.read(config) // _HEADS.read(config)
    if ratio < 1 or head % ratio:
        config.refuse("channel_shrink_ratio", f"must divide the width of a head, which is {head}")
    return int(width.read(config)) // ratio


_RATIO = f.Int("channel_shrink_ratio", default=4)
_FIELDS = BertFields()
_ENCODER = _FIELDS.body(
    kind="two_streams",
    block={
        "second_feed_forward": {
            "kind": "mlp",
            "hidden": f.Derived(lambda config: _shrunk(_HIDDEN, _RATIO.read(config), config)),
            "activation": f.Activation("hidden_act", "gelu"),
        }
    },
    layout={
        "coordinates": f.Int("max_2d_position_embeddings", default=1024),
        "width": f.Computed(
            _RATIO,
            lambda ratio, config: _shrunk(_WIDTH, ratio, config),
            lambda width, context: context.model.d_model // width,
        ),
        "norm": NORM,
    },
)
_BODY = {
    **_ENCODER,
    "context_length": f.Rows("max_position_embeddings", default=512, start=_PADDING),
    "position": {"kind": "learned", "offset": _PADDING},
}

_TENSORS = replace(
    TENSORS,
    name="lilt",
    rules=(
        *TENSORS.rules,
        *(
            same(
                f"layout_embeddings.{name[0]}_position_embeddings.weight",
                f"embedding.layout.boxes.{name}.weight",
            )
            for name in ("x", "y", "height", "width")
        ),
        same("layout_embeddings.box_position_embeddings.weight", "embedding.layout.position.table.weight"),
        *modules(
            {"box_linear_embeddings": "projection", "LayerNorm": "norm"},
            "layout_embeddings.",
            "embedding.layout.",
        ),
        *modules(
            {
                **{
                    f"attention.self.layout_{name}": f"attention.second.{name}"
                    for name in ("query", "key", "value")
                },
                "attention.layout_output.dense": "attention.second.output",
                "attention.layout_output.LayerNorm": "second_attention_norm",
                "layout_intermediate.dense": "second_feed_forward.up",
                "layout_output.dense": "second_feed_forward.down",
                "layout_output.LayerNorm": "second_feed_forward_norm",
            },
            "encoder.layer.{layer}.",
            "encoder.blocks.{layer}.",
        ),
    ),
    prefix="lilt.",
)

FAMILIES = (
    Family(
        "lilt",
        _TENSORS,
        _BODY,
        {"LiltModel": pooler(), **classifiers("Lilt", "tanh")},
        fixed=FIXED,
        ignored=("classifier_dropout", *IGNORED),
    ),
)
