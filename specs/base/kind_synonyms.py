"""Names of kinds in other libraries and papers, for suggestions in errors."""

from __future__ import annotations

KIND_SYNONYMS: dict[str, dict[str, dict[str, str]]] = {
    "attention": {
        "mha": {"kind": "multi_head"},
        "multihead": {"kind": "multi_head"},
        "attention": {"kind": "multi_head"},
        "self_attention": {"kind": "multi_head"},
        "full": {"kind": "multi_head"},
        "softmax": {"kind": "multi_head"},
        "sdpa": {"kind": "multi_head"},
        "gqa": {"kind": "grouped_query"},
        "mqa": {"kind": "multi_query"},
        "mla": {"kind": "latent"},
        "multi_head_latent": {"kind": "latent"},
    },
    "feed_forward": {
        "ffn": {"kind": "mlp"},
        "dense": {"kind": "mlp"},
        "swiglu": {"kind": "gated", "activation": "silu"},
        "geglu": {"kind": "gated", "activation": "gelu"},
        "reglu": {"kind": "gated", "activation": "relu"},
        "glu": {"kind": "gated", "activation": "sigmoid"},
        "silu_and_mul": {"kind": "gated", "activation": "silu"},
        "gelu_and_mul": {"kind": "gated", "activation": "gelu"},
        "gelu_tanh_and_mul": {"kind": "gated", "activation": "gelu_tanh"},
        "gated_mlp": {"kind": "gated"},
        "relu": {"kind": "mlp", "activation": "relu"},
        "relu2": {"kind": "mlp", "activation": "relu2"},
        "relu_squared": {"kind": "mlp", "activation": "relu2"},
        "squared_relu": {"kind": "mlp", "activation": "relu2"},
        "gelu": {"kind": "mlp", "activation": "gelu"},
        "gelu_new": {"kind": "mlp", "activation": "gelu_tanh"},
        "moe": {"kind": "mixture"},
        "sparse_moe": {"kind": "mixture"},
        "experts": {"kind": "mixture"},
        "mixture_of_experts": {"kind": "mixture"},
    },
    "head": {
        "lm": {"kind": "language_modeling"},
        "causal_lm": {"kind": "language_modeling"},
        "lm_head": {"kind": "language_modeling"},
        "mlm": {"kind": "masked_language_modeling"},
        "masked_lm": {"kind": "masked_language_modeling"},
        "sequence_classification": {"kind": "classification"},
    },
    "norm": {
        "ln": {"kind": "layer_norm"},
        "rms": {"kind": "rms_norm"},
        "bn": {"kind": "batch_norm"},
    },
    "position": {
        "rotary": {"kind": "rope"},
        "rotary_embedding": {"kind": "rope"},
        "absolute": {"kind": "learned"},
        "learned_absolute": {"kind": "learned"},
        "sin": {"kind": "sinusoidal"},
        "sinusoid": {"kind": "sinusoidal"},
        "nope": {"kind": "none"},
        "relative": {"kind": "relative_bias"},
        "t5": {"kind": "relative_bias"},
    },
    "mixer": {
        "ssm": {"kind": "mamba2"},
        "mamba1": {"kind": "mamba"},
        "gdn": {"kind": "gated_delta_net"},
        "gated_deltanet": {"kind": "gated_delta_net"},
        "kda": {"kind": "kimi_delta_attention"},
        "rglru": {"kind": "rg_lru"},
    },
    "block": {
        "prenorm": {"kind": "pre_norm"},
        "preln": {"kind": "pre_norm"},
        "postln": {"kind": "post_norm"},
    },
}
"""The words of a spec, by slot and by the other name."""


def kind_meant(slot: str, word: str) -> dict[str, str] | None:
    """The words of a spec for ``word`` of another library, such as ``{"kind": "grouped_query"}``; None if unknown."""
    names, typed = KIND_SYNONYMS.get(slot, {}), normal(word)
    return names.get(typed) or names.get(typed.removesuffix("_attention"))


def normal(word: str) -> str:
    """A word as the tables of other names have it."""
    return word[:40].casefold().replace("-", "_").replace(" ", "_")


def written(keys: dict[str, str]) -> str:
    """Keys as YAML on one line."""
    return f"{{{', '.join(f'{key}: {value}' for key, value in keys.items())}}}"
