"""Ministral 3 (Mistral AI, 2025), the text models: ``Ministral3Config``, ``Ministral3Model`` and its heads.

Mistral with YaRN, and queries that grow with their position.
"""

from __future__ import annotations

from typing import Any

from specs.kinds.position import PositionKind
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields, llama_tensors
from zoo.families.common.rope import RopeField, RopeParameters, rope_of
from zoo.families.common.template import Data, FieldContext, UnfitError
from zoo.families.common.typed_fields import REQUIRED
from zoo.families.common.windowed_layers import SingleWindow

_FIELDS = LlamaFields(
    vocab_size=131072, intermediate_size=14336, layers=34, kv_heads=8, head_dim=128, context=262144, eps=1e-5
)
_ORIGINAL = "original_max_position_embeddings"
_YARN = {
    "rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, _ORIGINAL: 16384, "beta_fast": 32.0,
    "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta": 0.1,
}  # fmt: skip


class GrowingRope(RopeField):
    """A rotary position with the growth of queries, which a config states among the parameters of the rotation."""

    def read_parameters(self, config: Config, parameters: Config, theta: float | None = None) -> Data:
        beta = parameters.float("llama_4_scaling_beta", default=REQUIRED)
        length = parameters.int(_ORIGINAL, default=REQUIRED)
        parameters.ignore("max_position_embeddings")
        position: Data = super().read_parameters(config, parameters, theta)
        return {**position, "query_scaling": {"beta": beta, "length": length}} if beta else position

    def write(self, value: PositionKind, context: FieldContext) -> Data:
        fields: dict[str, Any] = super().write(value, context)
        growth = rope_of(value).query_scaling
        parameters = {
            "rope_type": "default",
            **(fields.pop("rope_scaling") or {}),
            "rope_theta": fields.pop("rope_theta"),
        }
        beta, length = (0.0, parameters.get(_ORIGINAL, 2)) if growth is None else (growth.beta, growth.length)
        if parameters.get(_ORIGINAL, length) != length:
            raise UnfitError(f"position.query_scaling.length {length}: it is {_ORIGINAL}")
        return {**fields, "rope_parameters": {**parameters, "llama_4_scaling_beta": beta, _ORIGINAL: length}}


FAMILIES = (
    Family(
        "ministral3",
        llama_tensors("ministral3"),
        _FIELDS.body(
            attention={"bias": False, "window": SingleWindow(_FIELDS.depth, default=None)},
            position=GrowingRope(
                _FIELDS.heads.width,
                _FIELDS.context,
                whole=WHOLE_HEADS,
                parameters=RopeParameters(unstated=_YARN),
            ),
        ),
        decoder_classes("Ministral3"),
    ),
)
