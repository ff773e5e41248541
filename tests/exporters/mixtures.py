"""Narrow models with mixtures of experts: each kind of expert, of routing and of stack."""

from __future__ import annotations

from typing import Any

from specs.model.model import Model
from tests.zoo.tiny import bert, gpt2, t5

D_MODEL, HIDDEN = 32, 64
"""As wide as the smallest blocks of quantized weights."""

SWIGLU = {"kind": "gated", "hidden": HIDDEN, "activation": "silu", "bias": False}
OSS = {"kind": "gated", "hidden": HIDDEN, "activation": "quick_gelu", "limit": 1.0, "up_offset": 1.0}
MLP = {"kind": "mlp", "hidden": HIDDEN, "activation": "relu"}
SIGMOID = {
    "scores": "sigmoid", "score_correction_bias": True, "scale": 1.7, "groups": {"count": 3, "top": 2, "group_score_top_k": 2},
}  # fmt: skip

OF_INPUT = {"scores": "sigmoid", "normalize": False, "weighs": "input"}

ATTENTION = {"kind": "multi_head", "heads": 2}
NORM = {"kind": "layer_norm"}


def mixture(expert: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """A mixture of six experts, of which two are chosen."""
    return {"kind": "mixture", "experts": 6, "top_k": 2, "expert": expert, **parts}


def _block(feed_forward: dict[str, Any], kind: str = "pre_norm") -> dict[str, Any]:
    return {"kind": kind, "norm": NORM, "attention": ATTENTION, "feed_forward": feed_forward}


def decoder(feed_forward: dict[str, Any], **changes: Any) -> Model:
    """A decoder of one layer with a mixture."""
    stack = {"layers": 1, "block": _block(feed_forward)}
    return gpt2(d_model=D_MODEL, vocab_size=40, decoder=stack, **changes)


def encoder(feed_forward: dict[str, Any]) -> Model:
    """An encoder of one layer with a mixture."""
    stack = {"layers": 1, "block": _block(feed_forward, "post_norm")}
    return bert(d_model=D_MODEL, vocab_size=40, encoder=stack)


def encoder_decoder(feed_forward: dict[str, Any]) -> Model:
    """One layer with a mixture in each stack."""
    stack = {"layers": 1, "block": _block(feed_forward)}
    return t5(d_model=D_MODEL, vocab_size=40, context_length=12, encoder=stack, decoder=stack)


MIXTURES: dict[str, Model] = {
    "swiglu": decoder(mixture(SWIGLU)),
    "gpt-oss": decoder(mixture(OSS, router={"bias": True})),
    "gelu": decoder(mixture({**SWIGLU, "activation": "gelu_tanh", "bias": True})),
    "multiplied": decoder(mixture({**SWIGLU, "multipliers": {"gate": 0.5, "output": 1.5}})),
    "relu": decoder(mixture(MLP, router={"normalize": False})),
    "sigmoid": decoder(mixture(SWIGLU, router=SIGMOID)),
    "shared": decoder(mixture(SWIGLU, shared=SWIGLU, shared_gate=True)),
    "weighted inputs": decoder(mixture(SWIGLU, router=OF_INPUT, shared=SWIGLU)),
    "odd": decoder(mixture({**SWIGLU, "hidden": 72})),
    "encoder": encoder(mixture(SWIGLU)),
    "encoder-decoder": encoder_decoder(mixture(MLP, top_k=1, router={"normalize": False})),
}
"""By name; of "odd", no block of quantized weights divides the width of experts."""
