"""Names of kinds in other libraries and papers, for suggestions in errors."""

from __future__ import annotations

KIND_SYNONYMS: dict[str, dict[str, dict[str, str]]] = {
    "attention": {
        "mha": {"kind": "multi_head"},
        "self_attention": {"kind": "multi_head"},
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
        "moe": {"kind": "mixture"},
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
    "norm": {"ln": {"kind": "layer_norm"}, "rms": {"kind": "rms_norm"}, "bn": {"kind": "batch_norm"}},
    "position": {
        "rotary": {"kind": "rope"},
        "absolute": {"kind": "learned"},
        "sin": {"kind": "sinusoidal"},
        "relative": {"kind": "relative_bias"},
        "t5": {"kind": "relative_bias"},
    },
    "mixer": {"ssm": {"kind": "mamba2"}, "mamba1": {"kind": "mamba"}, "gdn": {"kind": "gated_delta_net"}},
    "block": {
        "prenorm": {"kind": "pre_norm"},
        "preln": {"kind": "pre_norm"},
        "postln": {"kind": "post_norm"},
    },
}
"""The words of a spec, by slot and by the other name."""


def kind_meant(slot: str, word: str) -> dict[str, str] | None:
    """The words of a spec for ``word`` of another library, such as ``{"kind": "grouped_query"}``; None if unknown."""
    names = KIND_SYNONYMS.get(slot, {})
    typed = word[:40].casefold().replace("-", "_").replace(" ", "_")
    return names.get(typed) or names.get(typed.removesuffix("_attention"))


def written(keys: dict[str, str]) -> str:
    """Keys as YAML on one line."""
    return f"{{{', '.join(f'{key}: {value}' for key, value in keys.items())}}}"
