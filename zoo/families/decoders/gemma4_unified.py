"""The text models of Gemma 4's unified sizes (Gemma team, 2026): ``Gemma4UnifiedTextConfig``: Gemma 4 without embeddings per layer and
without mixtures."""

from __future__ import annotations

from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.template import Data
from zoo.families.decoders.gemma import CAP
from zoo.families.decoders.gemma4 import GEMMA4

_DEFAULTS = {"sliding_window": 1024, "max_position_embeddings": 262144}
_ABSENT = {"hidden_size_per_layer_input": 0, "enable_moe_block": False}
"""Fields that the reference does not have, with the value that describes it."""


class _Unified(Family):
    """Gemma 4's config with other defaults, and without the fields of what is absent."""

    def body_spec(self, config: Config, class_name: str) -> Data:
        config.data = {**_DEFAULTS, **config.data, **_ABSENT}
        return super().body_spec(config, class_name)

    def body_config(self, model: Model, class_name: str) -> Data:
        data = super().body_config(model, class_name)
        return {name: value for name, value in data.items() if name not in _ABSENT}


_SCORES = language_modeling(tied=True, bias=False, softcap=f.Float(CAP))

FAMILIES = (
    _Unified(
        "gemma4_unified_text",
        GEMMA4.tensors,
        GEMMA4.body,
        {
            "Gemma4UnifiedForCausalLM": _SCORES,
            "Gemma4UnifiedForConditionalGeneration": _SCORES,
            "Gemma4UnifiedTextModel": BODY,
        },
        fixed=GEMMA4.fixed,
        ignored=GEMMA4.ignored,
    ),
)
