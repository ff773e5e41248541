"""Small models of every architecture and mixer, whose heads, experts and vocabularies four processes can share."""

from __future__ import annotations

from typing import Any

from specs.model.model import Model

RMS = {"kind": "rms_norm"}
GATED = {"kind": "gated", "hidden": 24, "activation": "silu", "bias": False}
MLP = {"kind": "mlp", "hidden": 24, "activation": "gelu_tanh"}
GROUPED = {"kind": "grouped_query", "heads": 8, "kv_heads": 4, "bias": False}
HEADS = {"kind": "multi_head", "heads": 4}
MIXTURE = {"kind": "mixture", "experts": 4, "top_k": 2, "expert": {**GATED, "hidden": 12}}


def decoder(block: dict[str, Any], **changes: Any) -> Model:
    """A decoder of three layers with its own head."""
    return Model.model_validate(
        {
            "name": "small", "architecture": "decoder", "vocab_size": 32, "d_model": 16, "context_length": 64,
            "position": {"kind": "rope"},
            "decoder": {"layers": 3, "block": {"kind": "pre_norm", "norm": RMS, "feed_forward": GATED, **block}},
            "head": {"kind": "language_modeling", "tie_embeddings": False},
            "initialization": {"kind": "normal", "std": 0.2},
            **changes,
        }
    )  # fmt: skip


def mixer(kind: str, **fields: Any) -> Model:
    """A decoder in which attention follows two layers of another mixer, as in published hybrids."""
    data = decoder({"attention": GROUPED}).model_dump()
    block = {"kind": "pre_norm", "norm": RMS, "attention": GROUPED, "feed_forward": GATED}
    mixing = {**block, "attention": None, "mixer": {"kind": kind, **fields}}
    stack = {"layers": [{"use": "mixing", "repeat": 2}, {}], "block": block, "blocks": {"mixing": mixing}}
    return Model.model_validate({**data, "decoder": stack})


def rwkv() -> Model:
    """RWKV-7 of three layers with time and channel mixing in turn, of which the later ones read the values of the first."""
    time = {"kind": "rwkv7", "heads": 4, "head_dim": 4, "decay_rank": 3, "update_rank": 4, "gate_rank": 5}
    block = {"kind": "pre_norm", "norm": RMS, "attention": None, "feed_forward": None}
    stack = {
        "layers": [{"use": "first"}, {"use": "channels"}, {}],
        "block": {**block, "mixer": {**time, "value_rank": 2}},
        "blocks": {
            "first": {**block, "mixer": time},
            "channels": {**block, "mixer": {"kind": "rwkv_channel_mix", "hidden": 32}},
        },
    }
    return decoder({"attention": GROUPED}, decoder=stack, position={"kind": "none"})


def encoder(**changes: Any) -> Model:
    """A BERT of two layers that predicts masked tokens."""
    block = {"kind": "post_norm", "norm": {"kind": "layer_norm"}, "attention": HEADS, "feed_forward": MLP}
    return Model.model_validate(
        {
            "name": "small-encoder", "architecture": "encoder", "vocab_size": 32, "d_model": 16,
            "context_length": 64, "position": {"kind": "learned"},
            "embedding": {"token_types": 2, "norm": {"kind": "layer_norm"}},
            "encoder": {"layers": 2, "block": block},
            "head": {"kind": "masked_language_modeling", "norm": {"kind": "layer_norm"}},
            "initialization": {"kind": "normal", "std": 0.2},
            **changes,
        }
    )  # fmt: skip


def encoder_decoder(**attention: Any) -> Model:
    """A T5 of two and two layers, tied; ``attention`` are further keys of that of the encoder."""
    of_decoder = {"kind": "multi_head", "heads": 4, "bias": False, "scale": 1.0}
    block = {"kind": "pre_norm", "norm": RMS, "attention": of_decoder, "feed_forward": {**MLP, "bias": False}}
    return Model.model_validate(
        {
            "name": "small-t5", "architecture": "encoder-decoder", "vocab_size": 32, "d_model": 16,
            "position": {"kind": "relative_bias"},
            "encoder": {"layers": 2, "block": {**block, "attention": {**of_decoder, **attention}}},
            "decoder": {"layers": 2, "block": block},
            "head": {"kind": "language_modeling"}, "initialization": {"kind": "t5"},
        }
    )  # fmt: skip


def _norm(over: str) -> dict[str, Any]:
    return {"norm": RMS, "over": over}


TIED: dict[str, Any] = {"head": {"kind": "language_modeling", "tie_embeddings": True}}
LAYER_NORM: dict[str, Any] = {"norm": {"kind": "layer_norm"}, "attention": HEADS, "feed_forward": MLP}

MODELS: dict[str, Model] = {
    "encoder": encoder(),
    "decoder": decoder(LAYER_NORM, position={"kind": "learned"}),
    "encoder-decoder": encoder_decoder(),
    "block-summaries": encoder_decoder(block_summaries={"size": 4, "norm": RMS}),
    "tied": decoder(LAYER_NORM, position={"kind": "learned"}, **TIED),
    "grouped-query": decoder({"attention": GROUPED}),
    "mixture": decoder({"attention": GROUPED, "feed_forward": {**MIXTURE, "shared": GATED, "shared_gate": True}}),
    "weighted-inputs": decoder(
        {
            "attention": {**GROUPED, "chunk": 4},
            "feed_forward": {**MIXTURE, "router": {"normalize": False, "weighs": "input"}},
        }
    ),
    "hybrid": mixer("gated_delta_net", heads=8, key_heads=4, key_width=4, value_width=4),
    "alibi": decoder(LAYER_NORM, position={"kind": "alibi"}),
    "norms-by-head": decoder({"attention": {**GROUPED, "qk_norm": _norm("head"), "output_gate": True}}),
    "norms-over-width": decoder({"kind": "reordered_norm", "attention": {**GROUPED, "qk_norm": _norm("width")}}),
    "sinks": decoder({"kind": "sandwich", "attention": {**GROUPED, "sinks": True, "window": 4}}),
    "latent": decoder(
        {
            "attention": {
                "kind": "latent",
                "heads": 4,
                "query_rank": 8,
                "kv_rank": 6,
                "head_dim": 4,
                "rope_dim": 2,
                "value_dim": 4,
            }
        }
    ),
    "xielu": decoder({"attention": GROUPED, "feed_forward": {**MLP, "activation": "xielu"}}),
    "shared-layers": decoder(
        {"attention": GROUPED},
        decoder={
            "layers": [{"repeat": 3, "shared": True}],
            "block": {"kind": "parallel", "norm": RMS, "attention": GROUPED, "feed_forward": GATED},
        },
    ),
    "mamba": mixer("mamba", width=32, state_size=4, step_rank=4, norm=RMS),
    "mamba-heads": mixer("mamba", width=32, state_size=4, step_rank=4, heads=4),
    "mamba2": mixer("mamba2", heads=8, head_dim=4, state_size=4, groups=4),
    "mamba2-one-group": mixer("mamba2", heads=8, head_dim=4, state_size=4, groups=1),
    "kimi-delta": mixer("kimi_delta_attention", heads=4, head_dim=4),
    "linear-attention": mixer("linear_attention", heads=4, key_width=4, value_width=4),
    "linear-attention-by-head": mixer(
        "linear_attention", heads=4, key_width=4, value_width=4, output_norm={"norm": RMS, "over": "head"}
    ),
    "rg-lru": mixer("rg_lru", width=16, heads=4),
    "short-convolution": mixer("short_convolution"),
    "rwkv7": rwkv(),
    "relative-key": decoder(LAYER_NORM, position={"kind": "relative_key", "before": 3, "after": 3}),
    "distances": decoder(LAYER_NORM, position={"kind": "disentangled", "max_distance": 3, "projections": "own"}),
    "relative-sinusoidal": decoder(LAYER_NORM, position={"kind": "relative_sinusoidal"}),
    "relative-bias-by-layer": decoder(LAYER_NORM, position={"kind": "relative_bias", "per_layer": True}),
    "rotated-input": decoder(LAYER_NORM, position={"kind": "rope", "rotates": "input"}),
    "values-normed": decoder({"attention": {**GROUPED, "value_norm": RMS}}),
}  # fmt: skip
"""By what is special about each."""
