"""Whisper (Radford et al., 2022): ``WhisperConfig``."""

from __future__ import annotations

from specs.embedding import Spectrogram
from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.family import ConfigFamily, Data, UnfitError
from zoo.configs.heads import BODY, language_modeling
from zoo.configs.seq2seq import Sizes, read_stack, write_stacks

_SIZES = Sizes(layers=4, heads=6, hidden=1536, dropout=0.0)
_BIAS = {"query": True, "key": False, "value": True, "output": True}
_SINUSOIDAL = {"kind": "sinusoidal", "layout": "half_split", "spacing": "tensor2tensor", "table": True}


def _read(config: Config, class_name: str) -> Data:
    config.must("is_decoder", False, "it is the decoder alone")
    config.ignore("scale_embedding")  # which no forward pass reads
    config.ignore(
        "median_filter_width", "forced_decoder_ids", "alignment_heads"
    )  # of timestamps and generation
    config.ignore("use_weighted_layer_sum", "classifier_proj_size")  # of the classifier
    noise = ("prob", "length", "min_masks")
    config.ignore(
        "apply_spec_augment", *(f"mask_{axis}_{each}" for axis in ("time", "feature") for each in noise)
    )
    dropout = config.float("dropout", default=_SIZES.dropout)
    mel_bins = config.int("num_mel_bins", default=80)
    return {
        "architecture": "encoder-decoder",
        "vocab_size": config.int("vocab_size", default=51865),
        "d_model": config.int("d_model", "hidden_size", default=384),
        "embedding": {"dropout": dropout},
        "encoder": {
            "embedding": {"kind": "spectrogram", "mel_bins": mel_bins, "dropout": dropout},
            "position": _SINUSOIDAL,
            "context_length": config.int("max_source_positions", default=1500),
            **read_stack(config, "encoder", _SIZES, kind="pre_norm", bias=_BIAS),
        },
        "decoder": {
            "position": {"kind": "learned"},
            "context_length": config.int("max_target_positions", default=448),
            **read_stack(config, "decoder", _SIZES, kind="pre_norm", bias=_BIAS),
        },
        "initialization": {"kind": "normal", "std": config.float("init_std", default=0.02)},
    }


def _write(model: Model) -> Data:
    fields = write_stacks(model)
    assert model.encoder is not None
    assert model.decoder is not None
    embedding = model.embedding_of(model.encoder)
    if not isinstance(embedding, Spectrogram):
        raise UnfitError(f"embedding kind {embedding.kind}")
    return {
        "vocab_size": model.vocab_size,
        "num_mel_bins": embedding.mel_bins,
        "max_source_positions": model.context_length_of(model.encoder),
        "max_target_positions": model.context_length_of(model.decoder),
        **fields,
    }


CLASSES = {
    "WhisperForConditionalGeneration": language_modeling(tied=True),
    "WhisperModel": BODY,
}

FAMILIES = (ConfigFamily("whisper", _read, _write, CLASSES),)
