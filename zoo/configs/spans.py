"""GLiNER's directories: ``gliner_config.json``, whose head scores spans, with the config of its encoder inside, read and written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from specs.base.suggest import suggestion
from specs.kinds.spans import Lstm, Spans
from specs.language.preset_files import preset_names
from specs.model.model import Model
from zoo.configs.causal_encoder import causal_encoder
from zoo.configs.sentence import body_class
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.template import Data, UnfitError
from zoo.families.common.typed_fields import REQUIRED
from zoo.weights.names import GLINER

_HIDDEN, _DROPOUT, _WIDTH, _LAYERS = 512, 0.4, 12, 1
"""The library's defaults."""

_OF_OTHERS = {
    "labels_encoder": "labels with an encoder of their own (a bi-encoder)",
    "labels_decoder": "a decoder that generates labels",
    "relations_layer": "relations between entities",
    "span_encoder_config": "layers for spans before their vectors",
    "precomputed_prompts_mode": "labels whose vectors the checkpoint holds",
    "fuse_layers": "a mean of all layers",
    "post_fusion_schema": "attention between labels and words after the encoder",
}
"""Fields that add parts to the model, each with the part."""

_OF_USE = (
    *("ent_token", "sep_token", "max_len", "words_splitter_type", "model_name", "name", "vocab_size"),
    *("max_types", "max_neg_type_ratio", "fine_tune", "id_to_classes", "labels_encoder_config"),
    *("labels_decoder_config", "represent_spans", "neg_spans_ratio", "token_loss_coef", "span_loss_coef"),
    *("random_drop", "shuffle_types", "size_sup", "num_post_fusion_layers", "decoder_mode"),
)
"""Fields for the client, for training, or for parts that the model does not have."""


def gliner_config(path: Path) -> Config | None:
    """The config of GLiNER in a directory, or in the file itself; None for other checkpoints."""
    file = path / GLINER if path.is_dir() else path
    if file.name != GLINER or not os.path.lexists(file):
        return None
    return Config.load(file, within=file.parent)


def read_spans(config: Config) -> Data:
    """Return the head of a spec and the width of its vectors, as ``projection``. Raises :class:`ConfigError` for other models of the library."""
    mode = config.text("span_mode", default="markerV0")
    if mode != "markerV0":
        config.refuse(
            "span_mode", "must be markerV0, two layers for each end of a span, as no other is supported"
        )
    for name, part in _OF_OTHERS.items():
        if config.any(name):
            config.refuse(name, f"is not supported: specs cannot express {part}")
    config.must("embed_ent_token", True, "labels have the vectors of their label tokens")
    if (pooling := config.text("subtoken_pooling", default="first")) not in ("first", "last"):
        config.refuse(
            "subtoken_pooling", f"must be first or last: {pooling} of all tokens of a word is not supported"
        )
    config.ignore(*_OF_USE, "encoder_config")
    token = config.int("class_token_index", default=-1)
    if token < 0:
        config.refuse(
            "class_token_index",
            "must be the id of the token before each label",
            "Load the model with GLiNER and save it again: GLiNER.from_pretrained(DIR).save_pretrained(DIR).",
        )
    layers = config.int("num_rnn_layers", default=_LAYERS) if config.bool("has_rnn", default=True) else 0
    return {
        "kind": "spans",
        "label_token": token,
        "max_width": config.int("max_width", default=_WIDTH),
        "projection": config.int("hidden_size", default=_HIDDEN),
        "recurrent": {"kind": "lstm", "layers": layers} if layers > 0 else None,
        "dropout": config.float("dropout", default=_DROPOUT),
    }


def encoder_config(config: Config) -> Config | None:
    """The config of the encoder inside; None where the config names the encoder alone."""
    if (inner := config.part("encoder_config")) is None:
        return None
    return Config({"model_type": "deberta-v2", **inner.data}, f"{config.where}: encoder_config")


def named_encoder(config: Config) -> str:
    """The preset of the encoder that a config names.  Raises :class:`ConfigError` where there is none of this name."""
    name = config.text("model_name", default=REQUIRED)
    preset = name.rpartition("/")[2].lower()
    if preset not in preset_names():
        config.refuse(
            "model_name",
            "must name the encoder of a preset, as there is no encoder_config",
            f"{suggestion(preset, preset_names())} Or write the encoder's config.json as encoder_config.",
        )
    return preset


def with_spans(head: Data, data: Data) -> Data:
    """Return a spec's plain data with a head of :func:`read_spans`, which projects where its width differs."""
    projection = None if head["projection"] == data["d_model"] else head["projection"]
    return {**data, "head": {**head, "projection": projection}}


def spans_spec(head: Data, config: Config, family: Family) -> Data:
    """Return the spec of a body with the head, without a name.  Raises :class:`ConfigError` for families without a body alone."""
    config.ignore("architectures")
    if (bare := body_class(family)) is None:
        config.refuse("model_type", "must be a family that has a class without a head, which GLiNER needs")
    return with_spans(head, causal_encoder(family.body_spec(config, bare)))


def write_spans(model: Model, encoder: Data, origin: Mapping[str, object]) -> Data:
    """Return GLiNER's config of a spec with the config of its ``encoder``.

    The fields for the client and for training come from ``origin``, the config of the checkpoint that the weights are of.

    Raises :class:`UnfitError` for another head.
    """
    head = model.head
    if not isinstance(head, Spans):
        raise UnfitError(f"head {head.kind}")
    if head.recurrent is not None and not isinstance(head.recurrent, Lstm):
        raise UnfitError(f"head.recurrent {head.recurrent.kind}")
    layers = 0 if head.recurrent is None else head.recurrent.layers
    return {
        **{"name": model.name, "model_type": "gliner", "ent_token": "<<ENT>>", "sep_token": "<<SEP>>"},
        **{
            "max_len": 384,
            "words_splitter_type": "whitespace",
            "subtoken_pooling": "first",
            "model_name": "",
        },
        **origin,
        "span_mode": "markerV0",
        "class_token_index": head.label_token,
        "vocab_size": model.vocab_size,
        "hidden_size": head.width(model.d_model),
        "max_width": head.max_width,
        "num_rnn_layers": layers,
        "has_rnn": layers > 0,
        "dropout": head.dropout,
        "encoder_config": encoder,
    }
