"""BERT (Devlin et al., 2018): ``BertModel`` and its heads for masked language modeling, classification and answers."""

from __future__ import annotations

from zoo.checkpoints.family import Family, affine, same

_STORED, _BLOCK = "encoder.layer.{layer}", "encoder.blocks.{layer}"

BODY = (
    same("embeddings.word_embeddings.weight", "embedding.token.weight"),
    same("embeddings.position_embeddings.weight", "embedding.position.table.weight"),
    same("embeddings.token_type_embeddings.weight", "embedding.token_type.weight"),
    *affine("embeddings.LayerNorm", "embedding.norm"),
    *affine(f"{_STORED}.attention.self.query", f"{_BLOCK}.attention.query"),
    *affine(f"{_STORED}.attention.self.key", f"{_BLOCK}.attention.key"),
    *affine(f"{_STORED}.attention.self.value", f"{_BLOCK}.attention.value"),
    *affine(f"{_STORED}.attention.output.dense", f"{_BLOCK}.attention.output"),
    *affine(f"{_STORED}.attention.output.LayerNorm", f"{_BLOCK}.attention_norm"),
    *affine(f"{_STORED}.intermediate.dense", f"{_BLOCK}.feed_forward.up"),
    *affine(f"{_STORED}.output.dense", f"{_BLOCK}.feed_forward.down"),
    *affine(f"{_STORED}.output.LayerNorm", f"{_BLOCK}.feed_forward_norm"),
)
"""The encoders that have BERT's names."""

RENAMED = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
UNUSED = ("embeddings.position_ids", "embeddings.token_type_ids")

BERT = Family(
    name="bert",
    model_types=("bert",),
    prefix="bert.",
    outside=("cls.", "classifier.", "qa_outputs."),
    rules=BODY,
    heads={
        "pooler": affine("pooler.dense", "head.dense"),
        "masked_language_modeling": (
            *affine("cls.predictions.transform.dense", "head.dense"),
            *affine("cls.predictions.transform.LayerNorm", "head.norm"),
            same("cls.predictions.decoder.weight", "head.vocabulary.weight"),
            same("cls.predictions.decoder.bias", "head.vocabulary.bias", copies=("cls.predictions.bias",)),
        ),
        "classification": (
            *affine("pooler.dense", "head.dense"),
            *affine("classifier", "head.labels"),
        ),
        "token_classification": affine("classifier", "head.labels"),
        "question_answering": affine("qa_outputs", "head.span"),
    },
    renamed=RENAMED,
    optional=("pooler.*", "cls.*", "classifier.*", "qa_outputs.*"),
    unused=UNUSED,
)
