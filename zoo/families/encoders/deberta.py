"""DeBERTa, and its versions 2 and 3 (He et al., 2020; 2021): ``DebertaConfig``, ``DebertaV2Config`` and their models.

BERT whose scores add the products of queries and keys with projected vectors of distances, mostly instead of positions in the
embedding.  In the first version, each layer projects the vectors with matrices of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from specs.kinds.disentangled import Disentangled
from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.config import Config
from zoo.families.common.decoders import grouped, layer_norm, query_key_value
from zoo.families.common.encoders import BERT_RULES, CLASSIFIER_RULES, UNUSED, classification, masked
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, QUESTION_ANSWERING, token_classes
from zoo.families.common.layers import Layers
from zoo.families.common.template import Data, Field, FieldContext, Template, read
from zoo.families.common.tensors import Tensors, affine, fused, modules, same

_NORM = layer_norm("layer_norm_eps", default=1e-7)
_DROPOUT = f.Float("hidden_dropout_prob", default=0.1)
_ACTIVATION = f.Activation("hidden_act", "gelu")
_ROWS = f.Rows("max_position_embeddings", default=512)
_POSITION = f.Kinds(
    f.Bool("position_biased_input", default=True), {True: {"kind": "learned"}, False: {"kind": "none"}}
)
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
        self._required(config, "relative_attention", "attention without distances")
        reach = config.int("max_relative_positions", default=-1)
        return {
            "kind": "disentangled",
            "max_distance": reach if reach > 0 else _ROWS.read(config),
            "terms": self._read_terms(config),
            "dropout": _DROPOUT.read(config),
            **self._read_version(config),
        }

    def _read_version(self, config: Config) -> Data:
        self._required(config, "share_att_key", "projections of distances of their own")
        buckets = config.int("position_buckets", default=-1)
        norm = read(_NORM, config) if self._is_normed(config) else None
        return {"buckets": buckets if buckets > 0 else None, "norm": norm}

    @staticmethod
    def _required(config: Config, name: str, without: str) -> None:
        if not config.bool(name, default=False):
            config.refuse(name, f"must be true: {without} is not supported")

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
            "max_relative_positions": value.max_distance,
            "pos_att_type": sorted(terms, reverse=True),
            **self._write_version(value),
        }

    def _write_version(self, value: Template) -> Data:
        return {
            "share_att_key": True,
            "position_buckets": value.buckets or -1,
            "norm_rel_ebd": "none" if value.norm is None else "layer_norm",
        }


class _FirstDistances(_Distances):
    """The position of the first version's attention: a vector for each distance."""

    def _read_version(self, config: Config) -> Data:
        return {"projections": "own"}

    def _write_version(self, value: Template) -> Data:
        return {}


_TIED = f.Computed(
    f.Bool("tie_word_embeddings", default=True),
    lambda tied, config: not config.bool("legacy", default=True) or tied,
)
"""Whether the scores of masked tokens use the token table, as they always do in the head that is not ``legacy``."""

_Fixed = Mapping[str, tuple[Template, str]]
"""Fields with the one value that is supported, and why."""


def _body(
    attention: Mapping[str, Template], *, vocab_size: int, d_model: int, depth: int
) -> tuple[dict[str, Template], _Fixed]:
    """The body, and the fields that it fixes."""
    width, heads = (
        f.Int("hidden_size", default=d_model),
        f.Int("num_attention_heads", default=d_model // 64),
    )
    shared = {
        "embedding_size": (width, "a projection of the embedding before its norm is not supported"),
        "pooler_hidden_size": (width, "the classifier reads vectors of that width"),
        "pooler_dropout": (0, "dropout before the dense layer of the pooler is not supported"),
        "attention_head_size": (
            f.Derived(lambda config: width.read(config) // heads.read(config)),
            "the reference computes with no other",
        ),
    }
    body = {
        "architecture": "encoder",
        "vocab_size": f.Int("vocab_size", default=vocab_size),
        "d_model": width,
        "context_length": _ROWS,
        "position": _POSITION,
        "embedding": {
            "token_types": f.Int("type_vocab_size", default=0),
            "norm": _NORM,
            "dropout": _DROPOUT,
        },
        "encoder": Layers(
            f.Depth("num_hidden_layers", default=depth),
            {
                "kind": "post_norm",
                "norm": _NORM,
                "attention": multi_head(
                    heads, dropout=f.Float("attention_probs_dropout_prob", default=0.1), **attention
                ),
                "feed_forward": mlp(4 * d_model, _ACTIVATION),
                "dropout": _DROPOUT,
            },
        ),
        "initialization": f.normal(),
    }
    return body, shared


def _family(
    model_type: str,
    prefix: str,
    tensors: Tensors,
    described: tuple[dict[str, Template], _Fixed],
    *,
    fixed: _Fixed,
    ignored: tuple[str, ...] = (),
) -> Family:
    body, shared = described
    classes = {
        f"{prefix}Model": BODY,
        f"{prefix}ForMaskedLM": masked(_ACTIVATION, _NORM, tie_embeddings=_TIED),
        f"{prefix}ForSequenceClassification": classification(
            f.Activation("pooler_hidden_act", "gelu"), f.Float("cls_dropout", default=_DROPOUT)
        ),
        f"{prefix}ForTokenClassification": token_classes(_DROPOUT),
        f"{prefix}ForQuestionAnswering": QUESTION_ANSWERING,
    }
    # only some heads read the first two
    reading = ("cls_dropout", "pooler_hidden_act", *ignored)
    return Family(
        model_type,
        tensors,
        body,
        classes,
        fixed={**shared, **fixed},
        ignored=reading,
        naming={"legacy": True},
    )


_STORED, _BLOCK = "encoder.layer.{layer}.", "encoder.blocks.{layer}."
_LAYER = {f"attention.self.{name}_proj": f"attention.{name}" for name in ("query", "key", "value")}
_DISTANCES = f"{_BLOCK}attention.position"
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
    "deberta-v2",
    (
        *(rule for rule in BERT_RULES if ".self." not in rule.stored),
        *modules(_LAYER, _STORED, _BLOCK),
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
        "cls.*", "lm_predictions.*", "pooler.*", "classifier.*", "qa_outputs.*",
    ),
    unused=("mask_predictions.*", *UNUSED),
)  # fmt: skip

_OWN = replace(
    _TENSORS,
    name="deberta",
    rules=(
        *(rule for rule in BERT_RULES if ".self." not in rule.stored),
        fused(f"{_STORED}attention.self.in_proj", query_key_value(_BLOCK[:-1]), grouped)[0],
        *(
            same(f"{_STORED}attention.self.{name[0]}_bias", f"{_BLOCK}attention.{name}.bias")
            for name in ("query", "value")
        ),
        *affine(f"{_STORED}attention.self.pos_q_proj", f"{_DISTANCES}.query"),
        same(f"{_STORED}attention.self.pos_proj.weight", f"{_DISTANCES}.key.weight"),
        same("encoder.rel_embeddings.weight", f"{_DISTANCES}.table.weight"),
    ),
)

FAMILIES = (
    _family(
        "deberta-v2",
        "DebertaV2",
        _TENSORS,
        _body({"position": _Distances()}, vocab_size=128100, d_model=1536, depth=24),
        fixed={"conv_kernel_size": (0, "a convolution beside the first layer (V2 XLarge) is not supported")},
        ignored=("conv_act", "conv_groups"),
    ),
    _family(
        "deberta",
        "Deberta",
        _OWN,
        _body(
            {
                "bias": {"query": True, "key": False, "value": True, "output": True},
                "position": _FirstDistances(),
            },
            vocab_size=50265,
            d_model=768,
            depth=12,
        ),
        fixed={"talking_head": (False, "projections of scores between heads are not supported")},
    ),
)
