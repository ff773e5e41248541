"""DeBERTa V2 and V3 (He et al., 2020; 2021): ``DebertaV2Config``, ``DebertaV2Model`` and its heads.

BERT whose scores add the products of queries and keys with projected vectors of distances, mostly instead of positions in the
embedding.
"""

from __future__ import annotations

from specs.kinds.disentangled import Disentangled
from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.config import Config
from zoo.families.common.decoders import layer_norm
from zoo.families.common.encoders import BERT_RULES, CLASSIFIER_RULES, UNUSED, classification, masked
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, QUESTION_ANSWERING, token_classes
from zoo.families.common.layers import Layers
from zoo.families.common.template import Data, Field, FieldContext, Template, read
from zoo.families.common.tensors import Tensors, modules, same

_NORM = layer_norm("layer_norm_eps", default=1e-7)
_DROPOUT = f.Float("hidden_dropout_prob", default=0.1)
_ACTIVATION = f.Activation("hidden_act", "gelu")
_D_MODEL = f.Int("hidden_size", default=1536)
_HEADS = f.Int("num_attention_heads", default=24)
_ROWS = f.Rows("max_position_embeddings", default=512)
_POSITION = f.Kinds(f.Bool("position_biased_input", default=True), {"kind": "learned"}, {"kind": "none"})
"""The positions that the embedding adds."""


class _Distances(Field):
    """The position of the attention; the reference's defaults differ from ours for all fields except the norm's."""

    component = Disentangled

    _terms = {
        frozenset({"c2p", "p2c"}): "both",
        frozenset({"c2p"}): "content_to_position",
        frozenset({"p2c"}): "position_to_content",
    }

    def read(self, config: Config) -> Data:
        for name, without in (
            ("relative_attention", "attention without distances"),
            ("share_att_key", "projections of distances of their own"),
        ):
            if not config.bool(name, default=False):
                config.refuse(name, f"must be true: {without} is not supported")
        buckets = config.int("position_buckets", default=-1)
        reach = config.int("max_relative_positions", default=-1)
        return {
            "kind": "disentangled",
            "buckets": buckets if buckets > 0 else None,
            "max_distance": reach if reach > 0 else _ROWS.read(config),
            "terms": self._read_terms(config),
            "norm": read(_NORM, config) if self._is_normed(config) else None,
            "dropout": _DROPOUT.read(config),
        }

    def _read_terms(self, config: Config) -> str:
        value = config.any("pos_att_type")
        names = value.lower().split("|") if isinstance(value, str) else value
        strings = isinstance(names, list) and all(isinstance(name, str) for name in names)
        terms = self._terms.get(frozenset(name.strip() for name in names)) if strings else None
        if terms is None:
            config.refuse("pos_att_type", "must name c2p, p2c or both", 'Write "c2p|p2c".')
        return terms

    def _is_normed(self, config: Config) -> bool:
        return config.choice("norm_rel_ebd", {"layer_norm": True, "none": False}, "none")

    def write(self, value: Template, context: FieldContext) -> Data:
        terms = next(names for names, meaning in self._terms.items() if meaning == value.terms)
        return {
            "relative_attention": True,
            "share_att_key": True,
            "position_buckets": value.buckets or -1,
            "max_relative_positions": value.max_distance,
            "pos_att_type": sorted(terms, reverse=True),
            "norm_rel_ebd": "none" if value.norm is None else "layer_norm",
        }


class _Tied(f.Bool):
    """Whether the scores of masked tokens use the token table, as they always do in the head that is not ``legacy``."""

    def read(self, config: Config) -> bool:
        return not config.bool("legacy", default=True) or bool(super().read(config))


_BODY = {
    "architecture": "encoder",
    "vocab_size": f.Int("vocab_size", default=128100),
    "d_model": _D_MODEL,
    "context_length": _ROWS,
    "position": _POSITION,
    "embedding": {
        "token_types": f.Int("type_vocab_size", default=0),
        "norm": _NORM,
        "dropout": _DROPOUT,
    },
    "encoder": Layers(
        f.Depth("num_hidden_layers", default=24),
        {
            "kind": "post_norm",
            "norm": _NORM,
            "attention": multi_head(
                _HEADS, dropout=f.Float("attention_probs_dropout_prob", default=0.1), position=_Distances()
            ),
            "feed_forward": mlp(6144, _ACTIVATION),
            "dropout": _DROPOUT,
        },
    ),
    "initialization": f.normal(),
}

_LAYER = {f"attention.self.{name}_proj": f"attention.{name}" for name in ("query", "key", "value")}
_DISTANCES = "encoder.blocks.{layer}.attention.position"
_OLD, _NEW = "cls.predictions", "lm_predictions.lm_head"
_MASKED = (
    *(
        same(f"{_OLD}.transform.{name}.{leaf}", f"head.{ours}.{leaf}", also=(f"{_NEW}.{name}.{leaf}",))
        for name, ours in (("dense", "dense"), ("LayerNorm", "norm"))
        for leaf in ("weight", "bias")
    ),
    same(f"{_OLD}.decoder.weight", "head.vocabulary.weight"),
    same(f"{_OLD}.decoder.bias", "head.vocabulary.bias", copies=(f"{_OLD}.bias",), also=(f"{_NEW}.bias",)),
)
_TENSORS = Tensors(
    "deberta",
    (
        *(rule for rule in BERT_RULES if ".self." not in rule.stored),
        *modules(_LAYER, "encoder.layer.{layer}.", "encoder.blocks.{layer}."),
        same("encoder.rel_embeddings.weight", f"{_DISTANCES}.table.weight"),
        *modules({"encoder.LayerNorm": f"{_DISTANCES}.norm"}),
    ),
    prefix="deberta.",
    outside=("cls.", "lm_predictions.", "mask_predictions.", "pooler.", "classifier.", "qa_outputs."),
    heads={
        "masked_language_modeling": _MASKED,
        "classification": modules({"pooler.dense": "head.dense", "classifier": "head.labels"}),
        **CLASSIFIER_RULES,
    },
    optional=(
        "embeddings.position_embeddings.weight",  # V3 stores some that it does not read
        "cls.*",
        "lm_predictions.*",
        "pooler.*",
        "classifier.*",
        "qa_outputs.*",
    ),
    unused=("mask_predictions.*", *UNUSED),
)

FAMILIES = (
    Family(
        "deberta-v2",
        _TENSORS,
        _BODY,
        {
            "DebertaV2Model": BODY,
            "DebertaV2ForMaskedLM": masked(
                _ACTIVATION, _NORM, tie_embeddings=_Tied("tie_word_embeddings", default=True)
            ),
            "DebertaV2ForSequenceClassification": classification(
                f.Activation("pooler_hidden_act", "gelu"), f.Float("cls_dropout", default=_DROPOUT)
            ),
            "DebertaV2ForTokenClassification": token_classes(_DROPOUT),
            "DebertaV2ForQuestionAnswering": QUESTION_ANSWERING,
        },
        fixed={
            "conv_kernel_size": (0, "a convolution beside the first layer (V2 XLarge) is not supported"),
            "embedding_size": (_D_MODEL, "a projection of the embedding before its norm is not supported"),
            "attention_head_size": (
                f.Derived(lambda config: _D_MODEL.read(config) // _HEADS.read(config)),
                "the reference computes with no other",
            ),
            "pooler_hidden_size": (_D_MODEL, "the classifier reads vectors of that width"),
            "pooler_dropout": (0, "dropout before the dense layer of the pooler is not supported"),
        },
        # only some heads read these
        ignored=("cls_dropout", "pooler_hidden_act", "conv_act", "conv_groups"),
        naming={"legacy": True},
    ),
)
