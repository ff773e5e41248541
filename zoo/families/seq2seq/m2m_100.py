"""M2M100 (Fan et al., 2020) and the dense models of NLLB-200 (NLLB Team, 2022): ``M2M100Config`` and its models.

mBART with fixed sinusoids, which start after the padding token's id, in the place of learned positions and norms of the
embedding.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.seq2seq import BartFields, StackFields
from zoo.families.common.template import Data

POSITION: Data = {
    "kind": "sinusoidal",
    "layout": "half_split",
    "spacing": "tensor2tensor",
    "offset": f.after_padding(),
}

FIELDS = BartFields(
    StackFields("pre_norm", activation="relu", attention_dropout=0.1),
    POSITION,
    vocab_size=f.Int("vocab_size", default=128112),
    scaled=True,
)
FAMILIES = (
    FIELDS.family(
        "m2m_100",
        {
            "M2M100ForConditionalGeneration": HeadClass("language_modeling", {"tie_embeddings": True}),
            "M2M100Model": BODY,
        },
    ),
)
