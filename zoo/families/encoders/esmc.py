"""ESM Cambrian (EvolutionaryScale, 2024): ``EsmcConfig``, ``EsmcModel`` and its heads.

An encoder of proteins with Llama's names: layer norms, also of queries and keys over all heads, and branches that are scaled by the
number of layers.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.encoders import classification, masked, masked_rules
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, token_classes
from zoo.families.common.llama_like import LlamaFields, llama_tensors
from zoo.families.common.tensors import affine, modules

_NORM = {"kind": "layer_norm", "eps": 1e-5}
_WITHOUT_BIAS = {**_NORM, "bias": False}
_FIELDS = LlamaFields(vocab_size=64, hidden_size=2560, intermediate_size=6912, layers=80, heads=40)
_DROPOUT = f.Float("classifier_dropout", default=0.1)
_BODY = _FIELDS.body(
    architecture="encoder",
    position=_FIELDS.rope(),
    norm=_NORM,
    attention={
        "bias": f.Bias("attention_bias", default=False),
        "qk_norm": {"norm": _WITHOUT_BIAS, "over": "width"},
    },
    feed_forward=_FIELDS.feed_forward(bias=f.Bool("mlp_bias", default=False)),
    residual={"kind": "add", "scale": f.Derived(lambda config: (36 / _FIELDS.depth.read(config)) ** 0.5)},
    stack={"final_norm": _WITHOUT_BIAS},
)
_TENSORS = llama_tensors(
    "esmc",
    stack="encoder",
    outside=("lm_head.", "classifier.", "score."),
    heads={
        "masked_language_modeling": masked_rules("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder"),
        "classification": modules({"classifier.dense": "head.dense", "classifier.out_proj": "head.labels"}),
        "token_classification": affine("score", "head.labels"),
    },
    optional=("lm_head.*", "classifier.*", "score.*"),
)

FAMILIES = (
    Family(
        "esmc",
        replace(_TENSORS, prefix="esmc."),
        _BODY,
        {
            "EsmcForMaskedLM": masked("gelu", _NORM, tie_embeddings=False),
            "EsmcModel": BODY,
            "EsmcForSequenceClassification": classification("tanh", _DROPOUT),
            "EsmcForTokenClassification": token_classes(_DROPOUT),
        },
        fixed={"tie_word_embeddings": (False, "the reference ties none")},
        ignored=("classifier_dropout",),
    ),
)
