"""Zamba 2 (Zyphra, 2024): ``Zamba2Config``, ``Zamba2Model`` and its head: Mamba-2 layers, some beside a transformer that they share.

Checkpoints store a shared transformer in the first layer that uses it, with the adapters of all its uses, which are numbered
over all transformers.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.blocks import gated
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layer_lists import LINEAR, read_kinds
from zoo.families.common.layers import Layers
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    layer_modules,
    llama_tensors,
)
from zoo.families.common.mamba import mamba2, mamba2_rules, mixer_head_width
from zoo.families.common.rope import OF_ROPE, RopeField
from zoo.families.common.side_transformers import HYBRID, SideTransformers, places, shared_rules
from zoo.families.common.tensors import Rule, fused, same

USUAL = [LINEAR, *([LINEAR] * 5 + [HYBRID]) * 7, *[LINEAR] * 4, HYBRID, *[LINEAR] * 3, HYBRID, *[LINEAR] * 2]
"""The layers of Zamba2-2.7B."""

_FIELDS = LlamaFields(
    vocab_size=32000, hidden_size=2560, layers=54, heads=32, context=4096, eps=1e-5,
)  # fmt: skip
_SETS = f.Int("num_mem_blocks", default=1)
_BIAS = f.Bool("add_bias_linear", default=False)
_LEAST = f.Mapped(
    f.Float("time_step_min", default=0.001),
    lambda least: {"least": least} if least > 0 else None,
    lambda limit: 0.0 if limit is None else limit.least,
)


def _kinds(config: Config) -> list[str]:
    depth = _FIELDS.depth.read(config)
    kinds = read_kinds(config, "layers_block_type", depth, (LINEAR, HYBRID))
    if kinds is None:
        if depth != len(USUAL):
            config.refuse("layers_block_type", f"must be a list: the usual layers are {len(USUAL)}")
        return USUAL
    return kinds


def _whole_heads(config: Config, heads: int, kv_heads: int) -> None:
    """Refuse grouped queries beside adapters of whole heads."""
    if kv_heads != heads and config.bool("use_shared_attention_adapter", default=False):
        rule = f"must equal num_attention_heads, which is {heads}: the reference's adapters are that wide"
        config.refuse("num_key_value_heads", rule)


_SIDES = SideTransformers(_FIELDS.d_model, heads=32, kinds=_kinds, check=_whole_heads)


_POSITION = f.Kinds(
    f.Bool("use_mem_rope", default=False),
    {False: {"kind": "none"}, True: RopeField(_SIDES.head_dim, _FIELDS.context, whole=WHOLE_HEADS)},
)
_HEADS, _EXPAND = f.Int("n_mamba_heads", default=8), f.Int("mamba_expand", default=2)
_MIXER = mamba2(
    heads=_HEADS,
    head_dim=mixer_head_width(
        "mamba_headdim",
        f.Derived(lambda config: _EXPAND.read(config) * _FIELDS.d_model.read(config)),
        _HEADS,
    ),
    expand=("mamba_expand", 2),
    d_model=_FIELDS.d_model,
    state_size=f.Int("mamba_d_state", default=64),
    groups=f.Int("mamba_ngroups", default=1),
    kernel_size=f.Int("mamba_d_conv", default=4),
    activation="silu",
    bias=_BIAS,
    convolution_bias=True,
    eps=1e-5,
    step_limit=_LEAST,
)
_HYBRID = {
    "kind": "side_transformer",
    "attention": _SIDES.attention(),
    "feed_forward": gated(
        f.Int("intermediate_size", default=f.times(4, _FIELDS.d_model)), "gelu", bias=_BIAS
    ),
    "sharing": {
        "sets": _SETS,
        "adapters": {
            "rank": f.Int("adapter_rank", default=128),
            "attention": f.Bool("use_shared_attention_adapter", default=False),
        },
    },
}


_SHARED = "layers.{owner}.shared_transformer."


def _adapters() -> tuple[Rule, ...]:
    rules = []
    for name in ("query", "key", "value"):
        stored, ours = (
            f"{_SHARED}self_attn.linear_{name[0]}_adapter_list.{{use}}",
            f"{BLOCK}attention.{name}.adapter",
        )
        rules += [
            same(f"{stored}.0.weight", f"{ours}.down.weight"),
            same(f"{stored}.1.weight", f"{ours}.up.weight"),
        ]
    stored = f"{_SHARED}feed_forward.gate_up_proj_adapter_list.{{use}}"
    gate, up = f"{BLOCK}feed_forward.gate.adapter.up", f"{BLOCK}feed_forward.up.adapter.up"
    down = same(f"{stored}.0.weight", f"{BLOCK}feed_forward.gate.adapter.down.weight")
    return *rules, down, *fused(f"{stored}.1", (gate, up))


def _mixer(stored: str) -> tuple[Rule, ...]:
    return (
        *mamba2_rules(f"{LAYER}{stored}mamba", f"{BLOCK}mixer"),
        same(f"{LAYER}{stored}input_layernorm.weight", f"{BLOCK}mixer_norm.weight"),
    )


_TENSORS = llama_tensors(
    "zamba2",
    *_mixer(""),
    *(replace(rule, beside=f"{BLOCK}side.weight") for rule in _mixer("mamba_decoder.")),
    *layer_modules({"linear": "side"}),
    *fused(f"{_SHARED}feed_forward.gate_up_proj", (f"{BLOCK}feed_forward.gate", f"{BLOCK}feed_forward.up")),
    *shared_rules(_SHARED),
    *_adapters(),
    without=("self_attn.", "mlp.", "layernorm"),
    final_norm="final_layernorm",
    places=places,
)

FAMILIES = (
    Family(
        "zamba2",
        _TENSORS,
        {
            "architecture": "decoder",
            "vocab_size": _FIELDS.vocab_size,
            "d_model": _FIELDS.d_model,
            "context_length": _FIELDS.context,
            "position": _POSITION,
            "decoder": Layers(
                _FIELDS.depth,
                {
                    "kind": "pre_norm",
                    "norm": _FIELDS.norm,
                    "attention": None,
                    "mixer": _MIXER,
                    "feed_forward": None,
                },
                (_SIDES.layers(_HYBRID, _SETS),),
            ),
            "initialization": f.normal(),
        },
        {"Zamba2ForCausalLM": language_modeling(tied=True, bias=False), "Zamba2Model": BODY},
        fixed={
            "tie_word_embeddings": (True, "otherwise the reference shares no transformers either"),
            "use_conv_bias": (True, "the reference always adds it"),
            **_SIDES.fixed(),
            "use_long_context": (False, "set max_position_embeddings to 16384 instead"),
            "hybrid_layer_ids": (f.Derived(_SIDES.uses), "layers_block_type lists these layers"),
        },
        ignored=(
            *OF_ROPE, "chunk_size", "kv_channels", "num_query_groups", "num_logits_to_keep", "time_step_floor", "time_step_max",
            "use_mamba_kernels", "use_mem_eff_path",
        ),
    ),
)  # fmt: skip
