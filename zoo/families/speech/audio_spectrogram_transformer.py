"""AST (Gong et al., 2021): ``ASTConfig``, ``ASTModel`` and ``ASTForAudioClassification``: a ViT over patches of a spectrogram."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.encoders import NORM
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import Labels
from zoo.families.common.images import SquareSide
from zoo.families.common.tensors import Rule, Tensors, affine, modules
from zoo.families.common.transforms import Unsqueezed
from zoo.families.vision import vit

_BODY = {
    **vit.BODY,
    "embedding": {
        "kind": "spectrogram_patches",
        "frames": f.Int("max_length", default=1024),
        "mel_bins": f.Int("num_mel_bins", default=128),
        "patch_size": SquareSide("patch_size", default=16),
        "frame_stride": f.Int("time_stride", default=10),
        "bin_stride": f.Int("frequency_stride", default=10),
        "dropout": f.Float("hidden_dropout_prob", default=0.0),
    },
}
_TENSORS = Tensors(
    "audio-spectrogram-transformer",
    (
        Rule("embeddings.distillation_token", ("embedding.distillation_token.weight",), Unsqueezed()),
        *vit.RULES,
    ),
    prefix="audio_spectrogram_transformer.",
    outside=("classifier.",),
    heads={
        "classification": (
            *modules({"classifier.layernorm": "head.norm"}),
            *affine("classifier.dense", "head.labels"),
        )
    },
    bare_heads=("pooled",),
    optional=("classifier.*",),
)

FAMILIES = (
    Family(
        "audio-spectrogram-transformer",
        _TENSORS,
        _BODY,
        {
            "ASTForAudioClassification": HeadClass(
                "classification", {"labels": Labels(), "norm": NORM, "pooling": "first_two"}
            ),
            "ASTModel": HeadClass("pooled", {"pooling": "first_two"}),
        },
    ),
)
