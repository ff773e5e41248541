"""ALBERT (Lan et al., 2019): ``AlbertModel`` and its heads; a layer that is passed through several times is stored once."""

from __future__ import annotations

from collections.abc import Sequence

from specs.model import Model
from zoo.checkpoints.bert import UNUSED
from zoo.checkpoints.family import Family, affine, same
from zoo.configs.albert import groups_of

_STORED = "encoder.albert_layer_groups.{group}.albert_layers.{inner}"
_BLOCK = "encoder.blocks.{layer}"


def _places(spec: Model) -> Sequence[dict[str, int]]:
    """The group of each layer and its place in there."""
    if spec.encoder is None:
        return []
    _, inner = groups_of(spec.encoder)
    owners = spec.encoder.owners()
    order = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
    return [{"group": order[owner] // inner, "inner": order[owner] % inner} for owner in owners]


ALBERT = Family(
    name="albert",
    model_types=("albert",),
    prefix="albert.",
    outside=("predictions.", "sop_classifier.", "classifier.", "qa_outputs."),
    places=_places,
    rules=(
        same("embeddings.word_embeddings.weight", "embedding.token.weight"),
        same("embeddings.position_embeddings.weight", "embedding.position.table.weight"),
        same("embeddings.token_type_embeddings.weight", "embedding.token_type.weight"),
        *affine("embeddings.LayerNorm", "embedding.norm"),
        *affine("encoder.embedding_hidden_mapping_in", "embedding.projection"),
        *affine(f"{_STORED}.attention.query", f"{_BLOCK}.attention.query"),
        *affine(f"{_STORED}.attention.key", f"{_BLOCK}.attention.key"),
        *affine(f"{_STORED}.attention.value", f"{_BLOCK}.attention.value"),
        *affine(f"{_STORED}.attention.dense", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.attention.LayerNorm", f"{_BLOCK}.attention_norm"),
        *affine(f"{_STORED}.ffn", f"{_BLOCK}.feed_forward.up"),
        *affine(f"{_STORED}.ffn_output", f"{_BLOCK}.feed_forward.down"),
        *affine(f"{_STORED}.full_layer_layer_norm", f"{_BLOCK}.feed_forward_norm"),
    ),
    heads={
        "pooler": affine("pooler", "head.dense"),
        "masked_language_modeling": (
            *affine("predictions.dense", "head.dense"),
            *affine("predictions.LayerNorm", "head.norm"),
            same("predictions.decoder.weight", "head.vocabulary.weight"),
            same("predictions.decoder.bias", "head.vocabulary.bias", copies=("predictions.bias",)),
        ),
        "classification": (
            *affine("pooler", "head.dense"),
            *affine("classifier", "head.labels"),
        ),
        "token_classification": affine("classifier", "head.labels"),
        "question_answering": affine("qa_outputs", "head.span"),
    },
    optional=("pooler.*", "predictions.*", "sop_classifier.*", "classifier.*", "qa_outputs.*"),
    unused=UNUSED,
)
