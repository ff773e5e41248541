"""The heads of wav2vec 2.0 and of the encoders of speech like it, and the fields of their configs that change no output."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import HeadClass
from zoo.families.common.heads import Labels
from zoo.families.common.template import Template
from zoo.families.common.tensors import affine, modules

_MASKS = tuple(
    f"mask_{axis}_{setting}" for axis in ("time", "feature") for setting in ("prob", "length", "min_masks")
)
_OF_PRETRAINING = (
    *(
        "num_codevectors_per_group",
        "num_codevector_groups",
        "contrastive_logits_temperature",
        "num_negatives",
    ),
    *("codevector_dim", "proj_codevector_dim", "diversity_loss_weight", "feat_quantizer_dropout"),
)
_OF_CLASSIFIERS = ("tdnn_dim", "tdnn_kernel", "tdnn_dilation", "xvector_output_dim")
_OF_ADAPTERS = ("adapter_kernel_size", "adapter_stride", "num_adapter_layers", "output_hidden_size")
IGNORED = (
    *(*_MASKS, *_OF_PRETRAINING, *_OF_CLASSIFIERS, *_OF_ADAPTERS),
    *(
        "layerdrop", "apply_spec_augment", "feat_proj_dropout", "num_feat_extract_layers", "vocab_size",
        "final_dropout",
    ),
    *("ctc_loss_reduction", "ctc_zero_infinity", "num_ctc_classes"),
    *("classifier_proj_size", "use_weighted_layer_sum"),  # of some heads
)  # fmt: skip

HEAD_RULES = {
    "ctc": affine("lm_head", "head.labels"),
    "classification": modules({"projector": "head.dense", "classifier": "head.labels"}),
    "token_classification": affine("classifier", "head.labels"),
}
CTC = HeadClass(
    "ctc",
    {
        "labels": f.Int("vocab_size", default=32),
        "blank": f.Int("pad_token_id", default=0),
        "dropout": f.Float("final_dropout", default=0.1),
    },
)
FRAMES: dict[str, Template] = {"labels": Labels()}
WHOLE = {
    **FRAMES,
    "activation": "identity",
    "dense_width": f.Int("classifier_proj_size", default=256),
    "transform": "tokens",
    "pooling": "mean",
}
REFUSED = {
    "ForPreTraining": "which compares vectors with a codebook",
    "ForXVector": "whose head has layers over time (TDNN)",
}
