"""RemBERT (Chung et al., 2020): ``RemBertConfig``, ``RemBertModel`` and its heads.

BERT with a narrow table of tokens, and scores from another, wider one.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.encoders import FIXED, IGNORED, BertFields, classifiers, masked, masked_rules, pooler
from zoo.families.common.family import Family
from zoo.families.common.tensors import affine
from zoo.families.encoders.bert import TENSORS

_DROPOUT = f.Float("classifier_dropout_prob", default=0.1)

FAMILIES = (
    Family(
        "rembert",
        replace(
            TENSORS,
            name="rembert",
            rules=(*TENSORS.rules, *affine("encoder.embedding_hidden_mapping_in", "embedding.projection")),
            prefix="rembert.",
            heads={
                **TENSORS.heads,
                "masked_language_modeling": masked_rules(
                    "cls.predictions.dense", "cls.predictions.LayerNorm", "cls.predictions.decoder"
                ),
            },
            renamed={},
        ),
        BertFields(250300, d_model=1152, heads=18, hidden=4608, depth=32, dropout=0.0).body(
            width=f.TableWidth("input_embedding_size", default=256),
            projection={"bias": True},  # even where the widths are equal
        ),
        {
            "RemBertModel": pooler(),
            "RemBertForMaskedLM": masked(
                f.Activation("hidden_act", "gelu"),
                dense_width=f.Int("output_embedding_size", default=1664),
                tie_embeddings=False,
            ),
            **classifiers("RemBert", "tanh", _DROPOUT),
        },
        fixed={**FIXED, "tie_word_embeddings": (False, "scores have a table of their own")},
        ignored=(
            *("classifier_dropout_prob", "output_embedding_size"),  # only some heads read them
            *("embedding_size", "embedding_dropout_prob"),  # of the first release, which states them twice
            *IGNORED,
        ),
    ),
)
