"""Zamba 2 (Zyphra, 2024): ``Zamba2Config``, ``Zamba2Model`` and its head: Mamba-2 layers, some beside a transformer that they share.

Checkpoints store a shared transformer in the first layer that uses it, with the adapters of all its uses, which are numbered
over all transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specs.attention import MultiHeadShape
from specs.base import Component
from specs.block import BlockParts, SideTransformer
from specs.mamba2 import StepLimit
from specs.model import Model
from specs.position import PositionKind
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.hybrid import LINEAR, read_kinds
from zoo.families.common.layers import Layers, Varies
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    layer_modules,
    llama_tensors,
)
from zoo.families.common.mamba import MixerHeadWidth, mamba2, mamba2_rules
from zoo.families.common.rope import RopeField
from zoo.families.common.template import Data, Field, Place, UnfitError
from zoo.families.common.tensors import Rule, fused, same

HYBRID = "hybrid"
USUAL = [LINEAR, *([LINEAR] * 5 + [HYBRID]) * 7, *[LINEAR] * 4, HYBRID, *[LINEAR] * 3, HYBRID, *[LINEAR] * 2]
"""The layers of Zamba2-2.7B."""

_FIELDS = LlamaFields(
    vocab_size=32000, hidden_size=2560, layers=54, heads=32, context=4096, eps=1e-5,
)  # fmt: skip
_ATTENTION_HEADS = f.Int("num_attention_heads", default=32)
_SETS = f.Int("num_mem_blocks", default=1)
_BIAS = f.Bool("add_bias_linear", default=False)


def _kinds(config: Config) -> list[str]:
    depth = _FIELDS.depth.read(config)
    kinds = read_kinds(config, "layers_block_type", depth, (LINEAR, HYBRID))
    if kinds is None:
        if depth != len(USUAL):
            config.refuse("layers_block_type", f"must be a list: the usual layers are {len(USUAL)}")
        return USUAL
    return kinds


def _uses(config: Config) -> list[int]:
    return [layer for layer, kind in enumerate(_kinds(config)) if kind == HYBRID]


def _both(config: Config) -> int:
    """The width of the stream and the embedding together."""
    return 2 * int(_FIELDS.d_model.read(config))


def _head_dim(config: Config) -> int:
    return _both(config) // max(_ATTENTION_HEADS.read(config), 1)


class _Hybrids(Varies):
    """The layers beside a transformer."""

    name = "hybrid"

    def __init__(self, differs: Data) -> None:
        self.differs = differs

    def read(self, config: Config, depth: int) -> list[bool]:
        uses = _uses(config)
        if not uses:
            config.refuse("layers_block_type", f"must have a layer of kind {HYBRID}")
        if not 1 <= _SETS.read(config) <= len(uses):
            config.refuse("num_mem_blocks", f"must be from 1 to {len(uses)}, the number of hybrid layers")
        return [layer in uses for layer in range(depth)]

    def holds(self, block: BlockParts, index: int) -> bool:
        return isinstance(block, SideTransformer)

    def write(self, where: Sequence[bool], place: Place) -> Data:
        if not any(where):
            raise UnfitError("layers without a transformer beside them alone")
        return {"layers_block_type": [HYBRID if here else LINEAR for here in where]}


class _WholeHeads(Field):
    """The heads of the transformer, which share the width of stream and embedding; scores are scaled as if half as wide."""

    def read(self, config: Config) -> Data:
        heads, width = _ATTENTION_HEADS.read(config), _head_dim(config)
        if heads < 1 or _both(config) % heads:
            config.refuse("num_attention_heads", f"must divide 2 * hidden_size, which is {_both(config)}")
        kv_heads = config.int("num_key_value_heads", default=heads)
        shape: Data = {"kind": "multi_head", "heads": heads}
        if kv_heads != heads:
            if config.bool("use_shared_attention_adapter", default=False):
                rule = f"must equal num_attention_heads, which is {heads}: the reference's adapters are that wide"
                config.refuse("num_key_value_heads", rule)
            shape = {"kind": "grouped_query", "heads": heads, "kv_heads": kv_heads}
        return {**shape, "head_dim": width, "scale": (width / 2) ** -0.5}

    def write(self, value: Component, place: Place) -> Data:
        if not isinstance(value, MultiHeadShape):
            raise UnfitError(f"attention kind {value.kind}")
        return {
            **_ATTENTION_HEADS.write(value.heads, place),
            "num_key_value_heads": value.key_value_heads,
        }


class _RopeOrNone(Field):
    """Rotation of queries and keys, or none."""

    switch = f.Bool("use_mem_rope", default=False)
    rope = RopeField(f.Derived(_head_dim), _FIELDS.context, whole=WHOLE_HEADS)

    def read(self, config: Config) -> Data:
        rope: Data = self.rope.read(config)
        return rope if self.switch.read(config) else {"kind": "none"}

    def write(self, value: PositionKind, place: Place) -> Data:
        if value.kind == "none":
            return self.switch.write(False, place)
        return {**self.switch.write(True, place), **self.rope.write(value, place)}


class _Least(Field):
    """The smallest step size; none where it is 0."""

    field = f.Float("time_step_min", default=0.001)

    def read(self, config: Config) -> Data | None:
        least: float = self.field.read(config)
        return {"least": least} if least > 0 else None

    def write(self, value: StepLimit | None, place: Place) -> Data:
        return self.field.write(0.0 if value is None else value.least, place)


_HEADS, _EXPAND = f.Int("n_mamba_heads", default=8), f.Int("mamba_expand", default=2)
_MIXER = mamba2(
    heads=_HEADS,
    head_dim=MixerHeadWidth(
        "mamba_headdim",
        f.Derived(lambda config: _EXPAND.read(config) * _FIELDS.d_model.read(config)),
        _HEADS,
    ),
    expand=("mamba_expand", 2),
    d_model=_FIELDS.d_model,
    state_size=f.Int("mamba_d_state", default=64),
    groups=f.Int("mamba_ngroups", default=1),
    kernel_size=f.Int("mamba_d_conv", default=4),
    activation="silu",  # type: ignore[arg-type]
    bias=_BIAS,
    convolution_bias=True,  # type: ignore[arg-type]
    eps=1e-5,  # type: ignore[arg-type]
    step_limit=_Least(),
)
_HYBRID = {
    "kind": "side_transformer",
    "attention": {
        "*": _WholeHeads(),
        "bias": False,
        "dropout": f.Float("attention_dropout", default=0.0),
    },
    "feed_forward": {
        "kind": "gated",
        "hidden": f.Int("intermediate_size", default=f.times(4, _FIELDS.d_model)),
        "activation": f.Activation("hidden_act", "gelu"),
        "bias": _BIAS,
    },
    "sharing": {
        "sets": _SETS,
        "adapters": {
            "rank": f.Int("adapter_rank", default=128),
            "attention": f.Bool("use_shared_attention_adapter", default=False),
        },
    },
}


def _places(spec: Model) -> Sequence[dict[str, int]]:
    """The first layer of the transformer of each layer, and the number of its use."""
    if spec.decoder is None:
        return []
    blocks = spec.decoder.layer_blocks()
    uses = [layer for layer, block in enumerate(blocks) if isinstance(block, SideTransformer)]
    places: list[dict[str, int]] = [{} for _ in blocks]
    for use, layer in enumerate(uses):
        sharing = blocks[layer].sharing
        places[layer] = {"owner": uses[use % (sharing.sets if sharing else len(uses))], "use": use}
    return places


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
    *(
        same(f"{_SHARED}{stored}.{leaf}", f"{BLOCK}{ours}.{leaf}")
        for stored, ours in {
            **{
                f"self_attn.{name[0]}_proj": f"attention.{name}"
                for name in ("query", "key", "value", "output")
            },
            "feed_forward.down_proj": "feed_forward.down",
            "input_layernorm": "attention_norm",
            "pre_ff_layernorm": "feed_forward_norm",
        }.items()
        for leaf in ("weight", "bias")
    ),
    *_adapters(),
    without=("self_attn.", "mlp.", "layernorm"),
    final_norm="final_layernorm",
    places=_places,
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
            "position": _RopeOrNone(),
            "decoder": Layers(
                _FIELDS.depth,
                {
                    "kind": "pre_norm",
                    "norm": _FIELDS.norm,
                    "attention": None,
                    "mixer": _MIXER,
                    "feed_forward": None,
                },
                (_Hybrids(_HYBRID),),
            ),
            "initialization": f.normal(),
        },
        {"Zamba2ForCausalLM": language_modeling(tied=True, bias=False), "Zamba2Model": BODY},
        fixed={
            "tie_word_embeddings": (True, "otherwise the reference shares no transformers either"),
            "use_conv_bias": (True, "the reference always adds it"),
            "attention_head_dim": (f.Derived(_head_dim), "the heads share the width of stream and embedding"),
            "attention_hidden_size": (f.Derived(_both), "the attention reads the stream and the embedding"),
            "use_long_context": (False, "set max_position_embeddings to 16384 instead"),
            "hybrid_layer_ids": (f.Derived(_uses), "layers_block_type lists these layers"),
        },
        ignored=(
            "chunk_size", "kv_channels", "num_query_groups", "num_logits_to_keep", "time_step_floor", "time_step_max",
            "use_mamba_kernels", "use_mem_eff_path",
        ),
    ),
)  # fmt: skip
