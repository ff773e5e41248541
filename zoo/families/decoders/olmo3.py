"""OLMo 3 (OLMo team, 2025): ``Olmo3Config``, ``Olmo3Model`` and its heads: OLMo 2 with windows, whose layers rotate unscaled."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layer_lists import all_but_every
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields
from zoo.families.common.rope_by_window import RopeByWindow
from zoo.families.common.windowed_layers import Windows
from zoo.families.decoders.olmo2 import OLMO2_TENSORS, olmo2_body

_FIELDS = LlamaFields(vocab_size=50304, eps=1e-5)
_POSITIONS = RopeByWindow(_FIELDS.heads.width, _FIELDS.context, theta=500000.0, whole=WHOLE_HEADS)


_WINDOWS = Windows(
    "local",
    f.Int("sliding_window", default=4096, null=True),
    all_but_every(4),
    position=f.Derived(_POSITIONS.read_local),
)

FAMILIES = (
    Family(
        "olmo3",
        OLMO2_TENSORS,
        olmo2_body(_FIELDS, position=_POSITIONS, varies=(_WINDOWS,)),
        decoder_classes("Olmo3", without=("ForTokenClassification", "ForQuestionAnswering")),
    ),
)
