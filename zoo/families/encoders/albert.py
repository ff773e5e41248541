"""ALBERT (Lan et al., 2019): ``AlbertConfig``, ``AlbertModel`` and its heads.

Layers come in groups of ``inner_group_num``, which are applied several times and stored once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from specs.model.model import Model
from specs.model.stack import LayerGroup, Stack
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.encoders import (
    CLASSIFIER_RULES,
    EMBEDDINGS,
    FIXED,
    IGNORED,
    UNUSED,
    BertFields,
    classifiers,
    masked,
    masked_rules,
    pooler,
)
from zoo.families.common.family import Family
from zoo.families.common.layers import Layers
from zoo.families.common.template import Data, FieldContext
from zoo.families.common.tensors import Tensors, affine, modules, projections


def _groups_of(stack: Stack) -> tuple[int, int]:
    """Return the number of groups of layers in a stack, and of layers in a group."""
    entry = stack.layers if isinstance(stack.layers, int) else stack.layers[0]
    inner = sum(run.repeat for run in entry.pattern) if isinstance(entry, LayerGroup) else 1
    return len(set(stack.owners())) // inner, inner


class _Passes(Layers):
    """A stack whose depth is the number of passes through its groups."""

    def read(self, config: Config) -> Data:
        return {**super().read(config), "layers": self._layers(config, self.depth.read(config))}

    def _layers(self, config: Config, passes: int) -> int | list[Data]:
        groups = config.int("num_hidden_groups", default=1)
        inner = config.int("inner_group_num", default=1)
        if not 1 <= groups <= passes:
            config.refuse("num_hidden_groups", f"must be from 1 to num_hidden_layers, which is {passes}")
        if inner < 1:
            config.refuse("inner_group_num", "must be 1 or more")
        if groups == passes and inner == 1:
            return passes
        times = Counter(int(i / (passes / groups)) for i in range(passes)).values()
        if inner == 1:
            return [{"repeat": count, "shared": True} for count in times]
        return [{"pattern": [{"repeat": inner}], "repeat": count, "shared": True} for count in times]

    def write(self, value: Stack | None, context: FieldContext) -> Data:
        groups, inner = _groups_of(context.stack)
        depth = self.depth.write(context.stack.depth // inner, context)
        return {
            **super().write(value, context),
            **depth,
            "num_hidden_groups": groups,
            "inner_group_num": inner,
        }


_FIELDS = BertFields(
    vocab_size=30000, d_model=4096, heads=64, hidden=16384, activation="gelu_new", dropout=0.0
)
_BODY = _FIELDS.body(
    layers=_Passes,
    width=f.TableWidth("embedding_size", default=128),
    projection={"bias": True},  # even where the widths are equal
)


def _places(spec: Model) -> Sequence[dict[str, int]]:
    """The group of each layer, and its index in the group."""
    if spec.encoder is None:
        return []
    _, inner = _groups_of(spec.encoder)
    owners = spec.encoder.owners()
    order = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
    return [{"group": order[owner] // inner, "inner": order[owner] % inner} for owner in owners]


_LAYER = {
    **projections("attention.", "query key value dense"),
    "attention.LayerNorm": "attention_norm",
    "ffn": "feed_forward.up",
    "ffn_output": "feed_forward.down",
    "full_layer_layer_norm": "feed_forward_norm",
}
_STORED = "encoder.albert_layer_groups.{group}.albert_layers.{inner}."
_TENSORS = Tensors(
    "albert",
    (
        *EMBEDDINGS,
        *affine("encoder.embedding_hidden_mapping_in", "embedding.projection"),
        *modules(_LAYER, _STORED, "encoder.blocks.{layer}."),
    ),
    prefix="albert.",
    outside=("predictions.", "sop_classifier.", "classifier.", "qa_outputs."),
    places=_places,
    heads={
        "pooler": affine("pooler", "head.dense"),
        "masked_language_modeling": masked_rules(
            "predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions.bias"
        ),
        "classification": modules({"pooler": "head.dense", "classifier": "head.labels"}),
        **CLASSIFIER_RULES,
    },
    optional=("pooler.*", "predictions.*", "sop_classifier.*", "classifier.*", "qa_outputs.*"),
    unused=UNUSED,
)

_MASKED = masked(f.Activation("hidden_act", "gelu_new"))
_UNREAD = ("down_scale_factor", "gap_size", "layers_to_keep", "net_structure_type", "num_memory_blocks")
FAMILIES = (
    Family(
        "albert",
        _TENSORS,
        _BODY,
        {
            "AlbertModel": pooler("pooler.weight"),
            "AlbertForMaskedLM": _MASKED,
            "AlbertForPreTraining": _MASKED,
            **classifiers("Albert", "tanh", f.Float("classifier_dropout_prob", default=0.1)),
        },
        fixed=FIXED,
        ignored=("classifier_dropout_prob", *_UNREAD, *IGNORED),  # only some heads read the first
    ),
)
