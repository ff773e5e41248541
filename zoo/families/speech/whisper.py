"""Whisper (Radford et al., 2022): ``WhisperConfig``, ``WhisperModel``, ``WhisperForConditionalGeneration``."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.seq2seq import LAYERDROP, SINUSOIDAL, StackFields, stack_rules
from zoo.families.common.tensors import Tensors, modules, same

_DROPOUT = f.Float("dropout", default=0.0)
_BIAS = {"query": True, "key": False, "value": True, "output": True}
_LAYERS = StackFields("pre_norm", layers=4, heads=6, hidden=1536, dropout=0.0, bias=_BIAS)
_BODY = {
    "architecture": "encoder-decoder",
    "*": f.Stated(is_encoder_decoder=True),
    "vocab_size": f.Int("vocab_size", default=51865),
    "d_model": f.Int("d_model", "hidden_size", default=384),
    "embedding": {"dropout": _DROPOUT},
    "encoder": _LAYERS.stack(
        "encoder",
        embedding={"kind": "spectrogram", "mel_bins": f.Int("num_mel_bins", default=80), "dropout": _DROPOUT},
        position={**SINUSOIDAL, "spacing": "tensor2tensor"},
        context_length=f.Int("max_source_positions", default=1500),
    ),
    "decoder": _LAYERS.stack(
        "decoder",
        position={"kind": "learned"},
        context_length=f.Int("max_target_positions", default=448),
    ),
    "initialization": f.normal("init_std"),
}

_TENSORS = Tensors(
    "whisper",
    (
        *modules({"conv1": "first", "conv2": "second"}, "encoder.", "encoder_embedding."),
        *stack_rules("encoder"),
        same("decoder.embed_tokens.weight", "decoder_embedding.token.weight"),
        *stack_rules("decoder"),
    ),
    prefix="model.",
    outside=("proj_out.",),
    heads={"language_modeling": (same("proj_out.weight", "head.vocabulary.weight"),)},
    optional=("proj_out.weight",),
)

_NOISE = tuple(
    f"mask_{axis}_{setting}" for axis in ("time", "feature") for setting in ("prob", "length", "min_masks")
)
_OF_GENERATION = ("median_filter_width", "forced_decoder_ids", "alignment_heads")
_OF_CLASSIFIER = ("use_weighted_layer_sum", "classifier_proj_size")

FAMILIES = (
    Family(
        "whisper",
        _TENSORS,
        _BODY,
        {"WhisperForConditionalGeneration": language_modeling(tied=True, bias=False), "WhisperModel": BODY},
        fixed={"is_decoder": (False, "it is the decoder alone")},
        # no forward pass reads scale_embedding
        ignored=(
            "scale_embedding",
            "apply_spec_augment",
            *LAYERDROP,
            *_NOISE,
            *_OF_GENERATION,
            *_OF_CLASSIFIER,
        ),
    ),
)
