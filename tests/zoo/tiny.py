"""Small models of each architecture, and of each kind of input."""

from __future__ import annotations

from typing import Any

from specs.model.model import Model

NORM = {"kind": "layer_norm"}
BLOCK: dict[str, Any] = {
    "kind": "pre_norm",
    "norm": NORM,
    "attention": {"kind": "multi_head", "heads": 2},
    "feed_forward": {"kind": "mlp", "hidden": 12, "activation": "gelu_tanh"},
}


def gpt2(**changes: object) -> Model:
    """A GPT-2 of two layers."""
    return Model.model_validate(
        {
            "name": "tiny-gpt2", "architecture": "decoder", "vocab_size": 20, "d_model": 8, "context_length": 10,
            "position": {"kind": "learned"},
            "decoder": {"layers": 2, "block": BLOCK},
            "head": {"kind": "language_modeling"}, **changes,
        }
    )  # fmt: skip


def bert(**changes: object) -> Model:
    """A BERT of two layers, without a head."""
    return Model.model_validate(
        {
            "name": "tiny-bert", "architecture": "encoder", "vocab_size": 20, "d_model": 8, "context_length": 10,
            "position": {"kind": "learned"},
            "embedding": {"token_types": 2, "norm": NORM},
            "encoder": {"layers": 2, "block": {**BLOCK, "kind": "post_norm"}},
            **changes,
        }
    )  # fmt: skip


def t5(**changes: object) -> Model:
    """A T5 of two and two layers."""
    attention = {"kind": "multi_head", "heads": 2, "bias": False, "scale": 1.0}
    feed_forward = {"kind": "mlp", "hidden": 12, "activation": "relu", "bias": False}
    block = {
        "kind": "pre_norm", "norm": {"kind": "rms_norm"}, "attention": attention, "feed_forward": feed_forward,
    }  # fmt: skip
    return Model.model_validate(
        {
            "name": "tiny-t5", "architecture": "encoder-decoder", "vocab_size": 20, "d_model": 8,
            "position": {"kind": "relative_bias"},
            "encoder": {"layers": 2, "block": block},
            "decoder": {"layers": 2, "block": block},
            "head": {"kind": "language_modeling"}, "initialization": {"kind": "t5"}, **changes,
        }
    )  # fmt: skip


def vit(**changes: object) -> Model:
    """A ViT of two layers and four patches, that classifies."""
    return Model.model_validate(
        {
            "name": "tiny-vit", "architecture": "encoder", "d_model": 8, "position": {"kind": "learned"},
            "embedding": {"kind": "patches", "image_size": 7, "patch_size": 3},
            "encoder": {"layers": 2, "block": BLOCK},
            "head": {"kind": "classification", "labels": 3},
            **changes,
        }
    )  # fmt: skip


def wav2vec2(**changes: object) -> Model:
    """A wav2vec 2.0 of two layers, which takes a mask."""
    return Model.model_validate(
        {
            "name": "tiny-wav2vec2", "architecture": "encoder", "d_model": 8,
            "position": {"kind": "convolutional", "kernel": 4, "groups": 2},
            "embedding": {
                "kind": "waveform",
                "convolutions": [{"channels": 4, "kernel": 10, "stride": 5}, {"channels": 6, "kernel": 3, "stride": 2}],
                "projection_norm": {"kind": "layer_norm"},
            },
            "encoder": {"layers": 2, "block": BLOCK},
            "head": {"kind": "ctc", "labels": 5},
            **changes,
        }
    )  # fmt: skip


def whisper(**changes: object) -> Model:
    """A Whisper of two and two layers."""
    biases = {"query": True, "key": False, "value": True, "output": True}
    block = {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "bias": biases}}
    sinusoidal = {"kind": "sinusoidal", "layout": "half_split", "spacing": "tensor2tensor", "table": True}
    return Model.model_validate(
        {
            "name": "tiny-whisper", "architecture": "encoder-decoder", "vocab_size": 20, "d_model": 8,
            "context_length": 10, "position": {"kind": "learned"},
            "encoder": {
                "layers": 2, "context_length": 6,
                "embedding": {"kind": "spectrogram", "mel_bins": 4},
                "position": sinusoidal, "block": block,
            },
            "decoder": {"layers": 2, "block": block},
            "head": {"kind": "language_modeling"}, **changes,
        }
    )  # fmt: skip


def parakeet(**changes: object) -> Model:
    """A Parakeet of two layers, which reads spectrograms of any length."""
    return Model.model_validate(
        {
            "name": "tiny-parakeet", "architecture": "encoder", "d_model": 8,
            "position": {"kind": "relative_sinusoidal"},
            "embedding": {
                "kind": "subsampled_spectrogram",
                "mel_bins": 6,
                "channels": 4,
                "convolutions": 2,
                "scale": "sqrt_d_model",
            },
            "encoder": {"layers": 2, "block": {**BLOCK, "kind": "conformer", "convolution": {"kernel": 3}}},
            "head": {"kind": "ctc", "labels": 5, "blank": 4},
            **changes,
        }
    )  # fmt: skip


def moonshine(**changes: object) -> Model:
    """A Moonshine of two and two layers, whose encoder reads samples."""
    return Model.model_validate(
        {
            "name": "tiny-moonshine", "architecture": "encoder-decoder", "vocab_size": 20, "d_model": 8,
            "position": {"kind": "rope", "dimensions": 2, "layout": "interleaved"},
            "encoder": {
                "layers": 2,
                "embedding": {
                    "kind": "filtered_waveform",
                    "convolutions": [
                        {"channels": 6, "kernel": 10, "stride": 5},
                        {"channels": 10, "kernel": 3, "stride": 2},
                        {"channels": 8, "kernel": 2, "stride": 1},
                    ],
                },
                "block": BLOCK,
            },
            "decoder": {"layers": 2, "context_length": 20, "block": BLOCK},
            "head": {"kind": "language_modeling"}, **changes,
        }
    )  # fmt: skip


_PICTURES: dict[str, Any] = {
    "d_model": 12,
    "embedding": {"kind": "patches", "image_size": 7, "patch_size": 3},
    "layers": 2,
    "block": BLOCK,
}


def clip(**changes: object) -> Model:
    """A CLIP of two and two layers, and four patches."""
    heads = {name: {"kind": "pooled", "projection": 6, "normalize": True, "output": f"{name}_embeds"}
             for name in ("text", "image")}  # fmt: skip
    return Model.model_validate(
        {
            "name": "tiny-clip", "architecture": "dual-encoder", "vocab_size": 20, "d_model": 8,
            "position": {"kind": "learned"},
            "text": {
                "context_length": 10, "causal": True, "layers": 2, "block": BLOCK,
                "head": {**heads["text"], "pooling": {"token": 9}},
            },
            "image": {**_PICTURES, "head": heads["image"]},
            "head": {"kind": "contrastive"}, **changes,
        }
    )  # fmt: skip


def owlvit(**changes: object) -> Model:
    """An OWL-ViT of two and two layers, and four patches."""
    boxes = {"kind": "patch_boxes", "norm": NORM, "projection": 6}
    return clip(name="tiny-owlvit", image={**_PICTURES, "head": boxes}, head={"kind": "detection"}, **changes)


def trocr(**changes: object) -> Model:
    """A TrOCR of two and two layers, and four patches."""
    return Model.model_validate(
        {
            "name": "tiny-trocr", "architecture": "encoder-decoder", "vocab_size": 20, "d_model": 8,
            "context_length": 10, "position": {"kind": "learned"},
            "encoder": {
                "layers": 2,
                "embedding": {"kind": "patches", "image_size": 7, "patch_size": 3},
                "block": BLOCK,
            },
            "decoder": {"layers": 2, "block": BLOCK},
            "head": {"kind": "language_modeling"}, **changes,
        }
    )  # fmt: skip


def llava(**changes: object) -> Model:
    """A LLaVA of two and two layers, whose four patches take the place of token 19."""
    return Model.model_validate(
        {
            "name": "tiny-llava", "architecture": "vision-language", "vocab_size": 20, "d_model": 8,
            "context_length": 20, "position": {"kind": "rope"},
            "image": {
                "d_model": 12, "position": {"kind": "learned"},
                "embedding": {"kind": "patches", "image_size": 7, "patch_size": 3},
                "layers": 2, "block": BLOCK,
            },
            "connector": {"kind": "linear", "token": 19},
            "decoder": {"layers": 2, "block": BLOCK},
            "head": {"kind": "language_modeling"}, **changes,
        }
    )  # fmt: skip


def of_patches(**changes: object) -> dict[str, Any]:
    """A block whose attention rotates by row and column."""
    axial = {"kind": "axial_rope", "coordinates": "index", "theta": 10.0}
    return {**BLOCK, "attention": {**BLOCK["attention"], "position": axial, **changes}}


def packed(**changes: object) -> Model:
    """A model of two and two layers that reads images of any size: one layer of windows of four patches, and DeepStack."""
    return Model.model_validate(
        {
            "name": "tiny-packed", "architecture": "vision-language", "vocab_size": 20, "d_model": 8,
            "context_length": 64,
            "position": {"kind": "rope", "sections": {"pairs": [0, 1, 1], "interleaved": True}},
            "image": {
                "d_model": 8,
                "position": {"kind": "interpolated", "side": 3},
                "embedding": {"kind": "packed_patches", "patch_size": 2, "channels": 1},
                "layers": [{"use": "windowed"}, {}], "block": of_patches(),
                "blocks": {"windowed": of_patches(patch_window=2)},
            },
            "connector": {"kind": "linear", "token": 19, "shuffle": 2, "deepstack": {"layers": [0]}},
            "decoder": {"layers": 2, "block": BLOCK},
            "head": {"kind": "language_modeling"}, **changes,
        }
    )  # fmt: skip
