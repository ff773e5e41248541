"""The kinds of components that a spec can name, and the file of each.

A file is imported when one of its kinds is looked up, or another file uses its classes. Norms and residuals need no entry: every
model uses their files, each of the name of its slot.
"""

from specs.base.registry import declare

FILES = {
    "norm": {},
    "rope_scaling": {
        "linear": "rope_scaling",
        "proportional": "rope_scaling",
        "llama3": "rope_scaling",
        "yarn": "rope_scaling",
        "dynamic_ntk": "rope_scaling",
        "longrope": "rope_scaling",
    },
    "position": {
        "learned": "position",
        "sinusoidal": "sinusoidal",
        "convolutional": "convolutional_position",
        "stacked_convolutional": "convolutional_position",
        "rope": "rope",
        "alibi": "alibi",
        "relative_bias": "relative_bias",
        "none": "position",
        "disentangled": "disentangled",
        "axial_rope": "patch_positions",
        "interpolated": "patch_positions",
        "relative_bias_2d": "patch_positions",
        "relative_key": "relative_key",
        "relative_boxes": "relative_boxes",
        "relative_sinusoidal": "relative_sinusoidal",
    },
    "attention": {
        "multi_head": "attention",
        "grouped_query": "attention",
        "multi_query": "attention",
        "latent": "latent",
    },
    "feed_forward": {
        "mlp": "feed_forward",
        "gated": "feed_forward",
        "mixture": "mixture",
        "side_by_side": "side_by_side",
    },
    "residual": {},
    "block": {
        "pre_norm": "block",
        "post_norm": "block",
        "parallel": "norm_placements",
        "reordered_norm": "norm_placements",
        "sandwich": "norm_placements",
        "normed_residual": "norm_placements",
        "side_transformer": "side_transformer",
        "conformer": "conformer",
        "bottleneck": "bottleneck",
        "two_streams": "two_streams",
    },
    "connector": {
        "linear": "connector",
        "mlp": "connector",
        "resampler": "resampler",
    },
    "mixer": {
        "short_convolution": "short_convolution",
        "gated_delta_net": "delta",
        "kimi_delta_attention": "delta",
        "linear_attention": "linear_attention",
        "mamba": "mamba",
        "mamba2": "mamba2",
        "rg_lru": "rg_lru",
        "rwkv7": "rwkv",
        "rwkv_channel_mix": "rwkv",
    },
    "embedding": {
        "tokens": "embedding",
        "next_token": "next_token",
        "patches": "patches",
        "spectrogram": "spectrogram",
        "spectrogram_patches": "spectrogram_patches",
        "frames": "frames",
        "subsampled_spectrogram": "frames",
        "packed_patches": "packed_patches",
        "waveform": "waveform",
        "filtered_waveform": "waveform",
    },
    "head": {
        "language_modeling": "vocabulary_heads",
        "masked_language_modeling": "vocabulary_heads",
        "pooler": "head",
        "classification": "sequence_heads",
        "distilled_classification": "sequence_heads",
        "pooled": "sequence_heads",
        "token_classification": "token_heads",
        "question_answering": "token_heads",
        "replaced_token_detection": "token_heads",
        "contrastive": "contrastive",
        "ctc": "token_heads",
        "none": "head",
        "patch_boxes": "patch_boxes",
        "detection": "patch_boxes",
        "masks": "masks",
        "multi_vector": "retrieval",
        "sparse": "retrieval",
        "token_weights": "retrieval",
        "several": "retrieval",
    },
    "decay": {
        "slopes": "linear_attention",
        "retention": "linear_attention",
    },
}
"""The file that registers each kind, by slot, in the order in which messages list the kinds."""

for _slot, _files in FILES.items():
    declare(_slot, {kind: f"{__name__}.{file}" for kind, file in _files.items()})
