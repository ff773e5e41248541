"""RecurrentGemma (Griffin team and Gemma team, 2024): ``RecurrentGemmaConfig``, ``RecurrentGemmaModel`` and its head.

Gemma with RG-LRU in two layers of three, and windows in the others.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from zoo.families.common import fields as f
from zoo.families.common.attention import Heads
from zoo.families.common.blocks import gated
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.hybrid import LayersOf
from zoo.families.common.layer_lists import FULL, LINEAR
from zoo.families.common.layers import Layers
from zoo.families.common.rope import RopeField
from zoo.families.common.template import Data, FieldContext, UnfitError
from zoo.families.common.tensors import Rule, Tensors, affine, modules, projections, same
from zoo.families.common.transforms import Depthwise

_WORDS = {"recurrent": LINEAR, "attention": FULL}


def _kinds(config: Config, depth: int) -> list[str]:
    """The kinds of all layers, which take turns."""
    turns = config.list("block_types", default=["recurrent", "recurrent", "attention"])
    config.ignore("layers_block_type", "layer_types", "_block_types")  # which follow from it
    if not turns or any(word not in _WORDS for word in map(str, turns)):
        config.refuse("block_types", f"must be a list of {' and '.join(_WORDS)}")
    if len(turns) * 100 < depth:
        config.refuse("block_types", f"must have an entry for every 100 of the {depth} layers")
    return [_WORDS[turns[layer % len(turns)]] for layer in range(depth)]


def _stated(kinds: Sequence[str]) -> Data:
    words = [word for kind in kinds for word, meaning in _WORDS.items() if meaning == kind]
    turns = next(n for n in range(1, len(words) + 1) if words == (words[:n] * len(words))[: len(words)])
    return {"block_types": words[:turns]}


def _root_in_bfloat16(config: Config) -> float:
    """The square root of d_model, rounded to bfloat16 (to nearest, ties to even) as the reference stores it."""
    (bits,) = struct.unpack("<I", struct.pack("<f", float(_D_MODEL.read(config)) ** 0.5))
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    (value,) = struct.unpack("<f", struct.pack("<I", rounded))
    return float(value)


def _unlimited(length: int | None, context: FieldContext) -> None:
    """Refuse a context length, which a written config, and so reading it back, would leave out."""
    if length is not None:
        raise UnfitError(f"context_length {length}")


_HIDDEN = f.Mapped(
    f.Int("intermediate_size", default=7680), lambda both: both // 2, lambda hidden: 2 * hidden
)
"""The width of feed-forwards, stated as the width of gate and up together."""

_CONTEXT = f.Computed(None, lambda none, config: None, _unlimited)
"""No limit: the reference has no field for one."""

_D_MODEL = f.Positive("hidden_size", default=2560)
_HEADS = Heads(_D_MODEL, f.Int("num_attention_heads", default=10), has_head_dim=False)
_WINDOW, _BIAS = (
    f.Int("attention_window_size", "sliding_window", default=2048),
    f.Bool("attention_bias", default=False),
)
_ACTIVATION = f.Activation("hidden_activation", "gelu_pytorch_tanh")
_ATTENTION = {
    "*": _HEADS,
    "bias": {"query": _BIAS, "key": _BIAS, "value": _BIAS, "output": True},
    "window": _WINDOW,
    "dropout": f.Float("attention_dropout", default=0.0),
}
_BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=256000),
    "d_model": _D_MODEL,
    "context_length": _CONTEXT,
    "position": RopeField(_HEADS.width, _CONTEXT, fraction=0.5),
    "embedding": {"scale": f.Derived(_root_in_bfloat16)},
    "decoder": Layers(
        f.Depth("num_hidden_layers", default=26),
        {
            "kind": "pre_norm",
            "norm": {"kind": "rms_norm", "eps": f.Float("rms_norm_eps", default=1e-6), "unit_offset": True},
            "attention": None,
            "mixer": {
                "kind": "rg_lru",
                "width": f.Int("lru_width", default=_D_MODEL),
                "heads": f.Int("num_attention_heads", default=10),
                "kernel_size": f.Int("conv1d_width", default=4),
                "activation": _ACTIVATION,
            },
            "feed_forward": gated(_HIDDEN, _ACTIVATION, bias=True),
        },
        (LayersOf(FULL, {"attention": _ATTENTION, "mixer": None}, _kinds, _stated),),
    ),
    "initialization": f.normal(),
}

_STORED, _OURS = "layers.{layer}.", "decoder.blocks.{layer}."
_MIXER, _LRU = f"{_STORED}temporal_block.", f"{_STORED}temporal_block.rg_lru."
_TENSORS = Tensors(
    "recurrent_gemma",
    (
        *modules({"embed_tokens": "embedding.token", "final_norm": "decoder.final_norm"}),
        same(f"{_STORED}temporal_pre_norm.weight", f"{_OURS}mixer_norm.weight"),
        same(f"{_STORED}temporal_pre_norm.weight", f"{_OURS}attention_norm.weight"),
        same(f"{_STORED}channel_pre_norm.weight", f"{_OURS}feed_forward_norm.weight"),
        *modules(
            {f"mlp_block.{part}_proj": f"feed_forward.{part}" for part in ("gate", "up", "down")},
            _STORED,
            _OURS,
        ),
        *modules(projections("", "q_proj k_proj v_proj o_proj"), _MIXER, _OURS),
        *modules({"linear_y": "gate", "linear_x": "input", "linear_out": "output"}, _MIXER, f"{_OURS}mixer."),
        Rule(f"{_MIXER}conv_1d.weight", (f"{_OURS}mixer.convolution.weight",), Depthwise()),
        same(f"{_MIXER}conv_1d.bias", f"{_OURS}mixer.convolution.bias"),
        *(
            same(f"{_LRU}{theirs}_gate_{leaf}", f"{_OURS}mixer.{ours}_gate.{leaf}")
            for theirs, ours in (("input", "input"), ("recurrent", "decay"))
            for leaf in ("weight", "bias")
        ),
        same(f"{_LRU}recurrent_param", f"{_OURS}mixer.rate"),
    ),
    prefix="model.",
    outside=("lm_head.",),
    heads={"language_modeling": affine("lm_head", "head.vocabulary")},
    optional=("lm_head.weight",),
    unused=("layers.*.temporal_block.rotary_emb.inv_freq", "normalizer"),
)

FAMILIES = (
    Family(
        "recurrent_gemma",
        _TENSORS,
        _BODY,
        {
            "RecurrentGemmaForCausalLM": language_modeling(
                tied=True, bias=False, softcap=f.Float("logits_soft_cap", default=30.0)
            ),
            "RecurrentGemmaModel": BODY,
        },
        fixed={"head_dim": (_HEADS.width, "the reference derives it")},
        ignored=(
            "logits_soft_cap",
            "w_init_variance_scale",
            "final_w_init_variance_scale",
            "embeddings_scale_by_sqrt_dim",
        ),
    ),
)
