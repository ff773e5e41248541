"""data2vec for audio (Baevski et al., 2022): wav2vec 2.0 with positions by several convolutions, whose vectors are normed."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.tensors import modules
from zoo.families.speech.wav2vec2 import NORM, WITHOUT_ADAPTERS, Layout, family

FAMILIES = (
    family(
        "data2vec-audio",
        "Data2VecAudio",
        WITHOUT_ADAPTERS,
        modules({"encoder.pos_conv_embed.layers.{layer}.conv": "embedding.position.layers.{layer}"}),
        more=("do_stable_layer_norm", "feat_extract_norm"),  # which the reference does not read
        layout=Layout(
            {
                "kind": "stacked_convolutional",
                "kernel": f.Int("conv_pos_kernel_size", default=19),
                "layers": f.Int("num_conv_pos_embeddings", default=5),
            },
            kind="post_norm",
            convolution_norm="layer",
            norm=NORM,
        ),
    ),
)
