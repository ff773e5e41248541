"""XLM (Lample and Conneau, 2019) and FlauBERT (Le et al., 2019) without embeddings of languages: ``XLMConfig``, ``FlaubertConfig`` and
their models.

BERT without token types whose scores are the products of the last hidden states with the table of tokens.
"""

from __future__ import annotations

from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.blocks import multi_head
from zoo.families.common.config import Config
from zoo.families.common.decoders import layer_norm
from zoo.families.common.encoders import CLASSIFIER_RULES
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY, QUESTION_ANSWERING, Labels, token_classes
from zoo.families.common.layers import Layers
from zoo.families.common.template import Template
from zoo.families.common.tensors import Tensors, affine, modules, projections, same

_D_MODEL = f.Int("emb_dim", default=2048)
_NORM = layer_norm("layer_norm_eps", default=1e-12)
_DROPOUT = f.Float("dropout", default=0.1)
_LANGUAGES = f.Int("n_langs", default=1)


def _body(kind: Template, **more: Template) -> dict[str, Any]:
    return {
        "architecture": "encoder",
        "vocab_size": f.Int("vocab_size", "n_words", default=30145),
        "d_model": _D_MODEL,
        "context_length": f.Rows("max_position_embeddings", default=512),
        "position": {"kind": "learned"},
        "embedding": {"norm": _NORM, "dropout": _DROPOUT},
        "encoder": Layers(
            f.Depth("n_layers", default=12),
            {
                "kind": kind,
                "norm": _NORM,
                "attention": multi_head(
                    f.Int("n_heads", default=16), dropout=f.Float("attention_dropout", default=0.1)
                ),
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": f.times(4, _D_MODEL),
                    "activation": f.Choice("gelu_activation", {True: "gelu", False: "relu"}, True),
                },
                "dropout": _DROPOUT,
            },
            **more,
        ),
        "initialization": f.normal("init_std"),
    }


_LAYER = {
    **projections("attentions.{layer}.", "q_lin k_lin v_lin out_lin"),
    "layer_norm1.{layer}": "attention_norm",
    "ffns.{layer}.lin1": "feed_forward.up",
    "ffns.{layer}.lin2": "feed_forward.down",
    "layer_norm2.{layer}": "feed_forward_norm",
}
_OUTSIDE = ("pred_layer.", "sequence_summary.", "classifier.", "qa_outputs.")
_TENSORS = Tensors(
    "xlm",
    (
        same("embeddings.weight", "embedding.token.weight"),
        same("position_embeddings.weight", "embedding.position.table.weight"),
        *affine("layer_norm_emb", "embedding.norm"),
        *modules(_LAYER, ours="encoder.blocks.{layer}."),
    ),
    prefix="transformer.",
    outside=_OUTSIDE,
    heads={
        "masked_language_modeling": affine("pred_layer.proj", "head.vocabulary"),
        "classification": affine("sequence_summary.summary", "head.labels"),
        **CLASSIFIER_RULES,
    },
    optional=tuple(f"{name}*" for name in _OUTSIDE),
    unused=("position_ids",),
)


def _family(model_type: str, prefix: str, body: dict[str, Any], *ignored: str) -> Family:
    return Family(
        model_type,
        _TENSORS,
        body,
        {
            f"{prefix}WithLMHeadModel": HeadClass(
                "masked_language_modeling",
                {"activation": None, "tie_embeddings": f.Bool("tie_word_embeddings", default=True)},
            ),
            f"{prefix}Model": BODY,
            f"{prefix}ForSequenceClassification": HeadClass(
                "classification",
                {"labels": Labels(), "dropout": f.Float("summary_first_dropout", default=0.1)},
            ),
            f"{prefix}ForTokenClassification": token_classes(_DROPOUT),
            f"{prefix}ForQuestionAnsweringSimple": QUESTION_ANSWERING,
        },
        refused={
            f"{prefix}ForQuestionAnswering": "a search for the end of an answer among its likely starts"
        },
        fixed={
            "use_lang_emb": (f.Derived(_said_of_languages), "embeddings of languages are not supported"),
            "causal": (False, "the model is an encoder"),
            "is_encoder": (True, "the reference has no decoder"),
            "asm": (False, "adaptive softmax is not supported"),
            "summary_type": ("first", "the classifier reads the first token"),
            "summary_use_proj": (True, "the classifier is a matrix"),
            "summary_proj_to_labels": (True, "the classifier scores labels"),
            "summary_activation": (None, "the classifier has no activation"),
        },
        ignored=(
            *("n_langs", "lang_id", "embed_init_std", "sinusoidal_embeddings"),  # the table is stored
            *("bos_index", "eos_index", "pad_index", "unk_index", "mask_index", "mask_token_id"),
            *("start_n_top", "end_n_top", "summary_first_dropout", *ignored),  # of some heads
            *("max_vocab", "id2lang", "lang2id", "n_words"),  # of early releases
        ),
    )


def _said_of_languages(config: Config) -> bool:
    """Return what a config says of embeddings of languages, which there are none of with one language."""
    return _LANGUAGES.read(config) <= 1 and config.bool("use_lang_emb", default=True)


FAMILIES = (
    _family("xlm", "XLM", _body("post_norm")),
    _family(
        "flaubert",
        "Flaubert",
        _body(f.Choice("pre_norm", {False: "post_norm", True: "pre_norm"}, False), final_norm=False),
        "layerdrop",
    ),
)
