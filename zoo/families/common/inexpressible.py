"""Families that are known, and what specs cannot express of them."""

from __future__ import annotations

_INDEXER = "attention to the tokens that an indexer chooses"
_SHIFTED = "attention within windows that shift from layer to layer"
_SHRINKING = f"images whose width and resolution change between layers, and {_SHIFTED} (Swin)"
_BOXES = "a convolutional network that reads images (ResNet), and a decoder of trained queries, each of which gives a class and a box"
_FROM_TOKENS = "biases of scores that are computed from the tokens, and short convolutions of keys, values and the outputs of branches"

INEXPRESSIBLE = {
    **dict.fromkeys(
        ("parakeet_rnnt", "parakeet_tdt"),
        "a decoder that steps through the frames of the encoder (transducers) with recurrent layers (LSTM)",
    ),
    "florence2": "images whose width and resolution change between layers of convolutions and of attention among channels (DaViT), "
    "among the tokens of an encoder",
    **dict.fromkeys(("swin", "swinv2", "donut-swin"), _SHRINKING),
    "clap": f"audio whose width and resolution change between layers, and {_SHIFTED} (HTSAT)",
    "swin2sr": f"{_SHIFTED}, groups of layers with convolutions after them, and an enlarged image as the output",
    **dict.fromkeys(("detr", "conditional_detr", "deformable_detr", "table-transformer"), _BOXES),
    "owlv2": "boxes with a score for whether they hold anything",
    "depth_anything": "the outputs of several layers that convolutions fuse into an image (DPT)",
    "modnet": "a network of convolutions alone (MobileNetV2 and its decoder), whose output is an image",
    "supertonic": "speech from text by flow matching: convolutions (ConvNeXt), a predictor of durations, steps of denoising and a vocoder",
    "rwkv": "the recurrence of RWKV-4, an average weighted by exponentials, and its gated channel mixing (RWKV-7 is supported)",
    "xlstm": "matrix memories with exponential gates (mLSTM)",
    "olmo_hybrid": "updates of a gated delta rule of up to 2, whose states may have negative eigenvalues",
    "bailing_hybrid": "Kimi Delta Attention whose decays have a lower bound, and latent attention with a gate per head",
    "zaya": "queries and keys that are mixed by convolutions, and values of the token before (compressed convolutional attention)",
    "lfm3": "attention whose output is gated by one number per head",
    "laguna": "attention whose output is gated by a softplus",
    **dict.fromkeys(
        ("qwen4_exp", "qwen4_exp_text"),
        f"several residual streams with gates (hyper-connections), embeddings of hashed n-grams, and {_INDEXER}",
    ),
    **dict.fromkeys(("inkling_mm_model", "inkling_text"), _FROM_TOKENS),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), _INDEXER),
    "deepseek_v4": f"several residual streams (hyper-connections), keys and values of compressed tokens, and {_INDEXER}",
    "longcat_flash": "a mixture beside two attentions and two feed-forwards, some of whose experts return their input",
    "hrm_text": "two stacks that run in turn several times for each token",
    "blt": "bytes that are grouped into patches by their entropy, between an encoder and a decoder of their own",
    "diffllama": "attention by the difference of two softmaxes",
    "doge": "attention that sees the tokens whose values score best",
    "jetmoe": "attention whose heads are chosen by a router",
    "reformer": "attention among tokens of equal hashes, and reversible layers",
}
"""model_type -> what a spec cannot express."""
