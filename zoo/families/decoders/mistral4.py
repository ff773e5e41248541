"""Mistral Small 4 (Mistral AI, 2026), the text models: ``Mistral4Config``, ``Mistral4Model`` and its heads.

DeepSeek-V2's mixture and latent attention, whose queries grow with their position as Ministral 3's do.
"""

from __future__ import annotations

from dataclasses import replace

from specs.kinds.latent import Latent
from specs.kinds.position import PositionKind
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields
from zoo.families.common.mixtures import TRAINING, ExpertGroups, FirstLayers, sigmoid_mixture
from zoo.families.common.rope import RopeParameters
from zoo.families.common.template import Data, FieldContext, UnfitError
from zoo.families.common.tensors import Rule, same
from zoo.families.common.transforms import Stacked
from zoo.families.decoders.deepseek import LATENT_TENSORS, LatentDims, latent_body, latent_fixed
from zoo.families.decoders.ministral3 import GrowingRope

_FIELDS = LlamaFields(
    vocab_size=131072, hidden_size=4096, intermediate_size=12288, layers=36, heads=32, context=1048576
)
_DIMS = LatentDims(query_rank=1024, kv_rank=256, head_dim=64)
_YARN = {
    "type": "yarn", "rope_theta": 10000.0, "factor": 128.0, "original_max_position_embeddings": 8192,
    "beta_fast": 32.0, "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta": 0.1,
}  # fmt: skip
_PART = "partial_rotary_factor"


class _Rope(GrowingRope):
    """The rotation of a part of each head, which configs state as a share of the head too."""

    def read_parameters(self, config: Config, parameters: Config, theta: float | None = None) -> Data:
        position = super().read_parameters(config, parameters, theta)
        rotated, whole = _DIMS.rotated.read(config), _DIMS.width.read(config)
        if position.pop("dimensions", whole) != rotated:
            parameters.refuse(_PART, f"must be {rotated / whole:g}, the share of qk_rope_head_dim in a head")
        return position

    def write(self, value: PositionKind, context: FieldContext) -> Data:
        fields, attention = super().write(value, context), context.block.attention
        if not isinstance(attention, Latent):
            raise UnfitError(f"attention kind {getattr(attention, 'kind', None)}")
        fields.pop(_PART)
        return {
            **fields,
            "rope_parameters": {
                **fields["rope_parameters"],
                _PART: attention.rope_dim / (attention.rope_dim + attention.head_dim),
            },
        }


_POSITION = _Rope(
    _DIMS.width,
    _FIELDS.context,
    fraction=f.Derived(lambda config: _DIMS.rotated.read(config) / _DIMS.width.read(config)),
    parameters=RopeParameters(unstated=_YARN),
    layout=f.Choice("rope_interleave", {True: "interleaved", False: "half_split"}, True),
)
_ROUTER = {
    "normalize": f.Bool("norm_topk_prob", default=True),
    "scale": f.Float("routed_scaling_factor", default=1.0),
    "groups": ExpertGroups(1, 1, 2),
}
_EXPERTS, _OURS = f"{LAYER}mlp.experts", f"{BLOCK}feed_forward.experts"
_TENSORS = replace(
    LATENT_TENSORS,
    name="mistral4",
    rules=(
        *(rule for rule in LATENT_TENSORS.rules if not rule.stored.startswith(_EXPERTS)),
        Rule(f"{_EXPERTS}.gate_up_proj", (f"{_OURS}.gate.weight", f"{_OURS}.up.weight"), Stacked(1)),
        same(f"{_EXPERTS}.down_proj", f"{_OURS}.down.weight"),
    ),
)
"""DeepSeek's, with the experts of a layer as one tensor each."""
_CLASSES = decoder_classes("Mistral4", without=("ForQuestionAnswering",))

FAMILIES = (
    Family(
        "mistral4",
        _TENSORS,
        latent_body(
            _FIELDS,
            dims=_DIMS,
            rope=_POSITION,
            feed_forward=sigmoid_mixture(_FIELDS, _ROUTER, experts=128, top_k=4, hidden=2048, shared=1),
            dense=FirstLayers(_FIELDS.feed_forward(), 0),
            constants=f.Stated(),
        ),
        _CLASSES,
        fixed={
            **latent_fixed(_FIELDS, "softmax"),
            "head_dim": (_DIMS.width, "it is that of queries and keys"),
        },
        ignored=TRAINING,
    ),
)
