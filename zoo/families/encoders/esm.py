"""ESM-2 (Lin et al., 2022), ESM-1b (Rives et al., 2019) and ESM-1v (Meier et al., 2021): ``EsmConfig``, ``EsmModel`` and its heads.

RoBERTa for proteins with norms before its branches, and rotary or learned positions.  Released checkpoints hold rotary frequencies
rounded to float16, as they were trained with, and the reference reads them.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import multi_head
from zoo.families.common.config import Config
from zoo.families.common.encoders import (
    FIXED,
    NORM,
    RENAMED,
    ROBERTA_HEADS,
    UNUSED,
    classification,
    masked,
    pooler,
)
from zoo.families.common.family import Family
from zoo.families.common.heads import token_classes
from zoo.families.common.layers import Layers
from zoo.families.common.tensors import Tensors, affine, modules, projections, same
from zoo.families.common.typed_fields import REQUIRED


def _not_null(rotary: bool, config: Config) -> bool:
    """Refuse a stated null, which is no kind of position."""
    name = "position_embedding_type"
    if config.null(name):
        config.refuse(name, 'must be "absolute" or "rotary": the reference has no positions with null')
    return rotary


_DROPOUT = f.Float("hidden_dropout_prob", default=0.1)
_ROTARY = f.Computed(
    f.Choice("position_embedding_type", {"absolute": False, "rotary": True}, "absolute"), _not_null
)
_OFFSET = f.after_padding()
_BODY = {
    "architecture": "encoder",
    "vocab_size": f.Int("vocab_size", default=33),
    "d_model": f.Int("hidden_size", default=768),
    "context_length": f.Rows(
        "max_position_embeddings",
        default=1026,
        start=f.Derived(lambda config: 0 if _ROTARY.read(config) else _OFFSET.read(config)),
    ),
    "position": f.Kinds(
        _ROTARY,
        {
            True: {"kind": "rope", "theta": f.Float("rope_theta", default=10000.0), "frequencies": "stored"},
            False: {"kind": "learned", "offset": _OFFSET, "*": f.Stated(rope_theta=10000.0)},
        },
    ),
    "embedding": {
        "token_dropout": f.When(
            f.Bool("token_dropout", default=False),
            {"token": f.Int("mask_token_id", default=REQUIRED), "rate": 0.12},
        ),
        "norm": f.When(f.Bool("emb_layer_norm_before", default=False), NORM),
    },
    "encoder": Layers(
        f.Depth("num_hidden_layers", default=12),
        {
            "kind": "pre_norm",
            "norm": NORM,
            "attention": multi_head(12, dropout=f.Float("attention_probs_dropout_prob", default=0.1)),
            "feed_forward": {
                "kind": "mlp",
                "hidden": f.Int("intermediate_size", default=3072),
                "activation": "gelu",
            },
            "dropout": _DROPOUT,
        },
    ),
    "initialization": f.normal(),
}

_LAYER = {
    "attention.LayerNorm": "attention_norm",
    **projections("attention.self.", "query key value"),
    "attention.output.dense": "attention.output",
    "LayerNorm": "feed_forward_norm",
    "intermediate.dense": "feed_forward.up",
    "output.dense": "feed_forward.down",
}
_OF_LAYERS = "encoder.layer.{}.attention.self.rotary_embeddings.inv_freq"
_TENSORS = Tensors(
    "esm",
    (
        same("embeddings.word_embeddings.weight", "embedding.token.weight"),
        same("embeddings.position_embeddings.weight", "embedding.position.table.weight"),
        *affine("embeddings.layer_norm", "embedding.norm"),
        same(
            "rotary_embeddings.inv_freq", "encoder.position.stored", also=tuple(map(_OF_LAYERS.format, "0*"))
        ),
        *modules(_LAYER, "encoder.layer.{layer}.", "encoder.blocks.{layer}."),
        *affine("encoder.emb_layer_norm_after", "encoder.final_norm"),
    ),
    prefix="esm.",
    outside=("lm_head.", "classifier."),
    heads={
        **ROBERTA_HEADS,
        "masked_language_modeling": (
            *modules({"lm_head.dense": "head.dense", "lm_head.layer_norm": "head.norm"}),
            same("lm_head.decoder.weight", "head.vocabulary.weight"),
            same("lm_head.bias", "head.vocabulary.bias"),
        ),
    },
    renamed=RENAMED,
    optional=("pooler.*", "lm_head.*", "classifier.*"),
    unused=(*UNUSED, "embeddings.position_embeddings.weight", _OF_LAYERS.format("*"), "contact_head.*"),
)

FAMILIES = (
    Family(
        "esm",
        _TENSORS,
        _BODY,
        {
            "EsmForMaskedLM": masked("gelu"),
            "EsmModel": pooler(),
            "EsmForSequenceClassification": classification("tanh", _DROPOUT),
            "EsmForTokenClassification": token_classes(_DROPOUT),
        },
        refused={"EsmForProteinFolding": "the folding trunk and the structure module of ESMFold"},
        fixed={
            "is_decoder": FIXED["is_decoder"],
            "add_cross_attention": FIXED["add_cross_attention"],
            "is_folding_model": (
                False,
                "the folding trunk and the structure module of ESMFold are not supported",
            ),
        },
        # the reference always uses GELU, and leaves out the embedding's dropout
        ignored=("hidden_act", "classifier_dropout", "rope_theta", "esmfold_config", "vocab_list"),
    ),
)
