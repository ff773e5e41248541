"""The text models of Gemma 4 (Gemma team, 2026): ``Gemma4TextConfig``, ``Gemma4TextModel`` and ``Gemma4ForCausalLM``.

Gemma 3 with norms around 1 and norms of values, an embedding of the tokens for each layer, wider heads in the layers without a
window, whose keys may be their values, and last layers that attend to the keys and values of earlier ones, or experts beside the
feed-forwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specs.kinds.attention import MultiHeadShape
from specs.kinds.block import BlockParts
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layer_lists import FULL, all_but_every
from zoo.families.common.layers import LayerVariation
from zoo.families.common.llama_like import BLOCK, WHOLE_HEADS, LlamaFields, layer_weights, llama_tensors
from zoo.families.common.rope_by_window import RopeByWindow, kind_of_layer
from zoo.families.common.template import Data, Field, FieldContext, UnfitError
from zoo.families.common.tensors import Rule, same
from zoo.families.common.transforms import Stacked
from zoo.families.common.typed_fields import REQUIRED
from zoo.families.common.windowed_layers import Windows
from zoo.families.decoders.gemma import ACTIVATION, CAP, SANDWICH_NORMS

_FIELDS = LlamaFields(
    vocab_size=262144, hidden_size=2304, intermediate_size=9216, layers=30, heads=8, kv_heads=4, head_dim=256,
    context=131072,
)  # fmt: skip
_HEADS = f.Int("num_attention_heads", default=8)
_KV_HEADS, _WIDTH = f.Int("num_key_value_heads", default=4), f.Int("head_dim", default=256)
_SAME = f.Bool("attention_k_eq_v", default=False)
_OVERRIDES = "per_layer_config"
_GLOBAL_WIDTH, _GLOBAL_KV_HEADS = "global_head_dim", "num_global_key_value_heads"


def _windowed(block: BlockParts) -> bool:
    return block.sliding_window is not None


def _of_images(config: Config) -> str | None:
    """The value that lets tokens of images see each other, which changes nothing for text, or none."""
    return "vision" if config.data.get("use_bidirectional_attention") == "vision" else None


def _overrides(config: Config) -> Data | None:
    """The fields that a config states for layers without a window, by layer; None if it states them once."""
    overrides = config.part(_OVERRIDES)
    if overrides is None:
        return None
    layers = list(overrides.data.values())
    named = {name.lstrip("0") or "0" for name in overrides.data}  # transformers 5.24 writes 05
    allowed = {"head_dim", "num_key_value_heads"}
    if any(
        not isinstance(fields, dict) or fields != layers[0] or not allowed.issuperset(fields)
        for fields in layers
    ):
        config.refuse(
            _OVERRIDES, "must state head_dim and num_key_value_heads, equal in all layers that it names"
        )
    wide = {
        str(layer)
        for layer, windowed in enumerate(_WINDOWS.read(config, _FIELDS.depth.read(config)))
        if not windowed
    }
    if layers and named != wide:
        config.refuse(_OVERRIDES, f"must name the layers of {FULL}: {', '.join(sorted(wide, key=int))}")
    return layers[0] if layers else {}


class _GlobalHeads(Field):
    """The heads of the layers without a window."""

    component = MultiHeadShape

    def width(self, config: Config) -> int:
        """The width of a head."""
        overrides = _overrides(config)
        width: int = config.int(_GLOBAL_WIDTH, default=512)
        return (
            width
            if overrides is None
            else Config(overrides, config.where).int("head_dim", default=_WIDTH.read(config))
        )

    def read(self, config: Config) -> Data:
        overrides, default = _overrides(config), _KV_HEADS.read(config)
        kv_heads = config.int(_GLOBAL_KV_HEADS, default=default)
        if overrides is not None:
            kv_heads = Config(overrides, config.where).int("num_key_value_heads", default=default)
        elif not _SAME.read(config):  # otherwise the reference does not read the field
            kv_heads = default
        return {"heads": _HEADS.read(config), "kv_heads": kv_heads, "head_dim": self.width(config)}

    def write(self, value: MultiHeadShape, context: FieldContext) -> Data:
        width = value.head_width(context.model.d_model)
        data = {_GLOBAL_WIDTH: width, _GLOBAL_KV_HEADS: value.key_value_heads}
        if not any(map(_windowed, context.stack.layer_blocks())):
            data |= _KV_HEADS.write(value.key_value_heads, context)
        return {**_HEADS.write(value.heads, context), **data}


_GLOBAL = _GlobalHeads()


class _WideRope(RopeByWindow):
    """The positions of both kinds of layer, whose heads differ in width; by default a quarter of the wide ones rotates."""

    default: Data = {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6}

    def read(self, config: Config) -> Data:
        parameters = config.part("rope_parameters") or Config({}, config.where)
        whole = parameters.part(FULL) or Config(self.default, config.where)
        parameters.ignore("sliding_attention")
        parameters.finish()
        config.pass_over("rope_theta")
        return self.read_parameters(*kind_of_layer(config, whole), self.theta)


_POSITIONS = _WideRope(f.Derived(_GLOBAL.width), _FIELDS.context, whole=WHOLE_HEADS)


class _LastIsGlobal(Windows):
    """Windows in all layers but the last."""

    def read(self, config: Config, depth: int) -> list[bool]:
        return [*super().read(config, depth)[:-1], *[False] * (depth > 0)]


_LOCAL: dict[str, Any] = {"kv_heads": _KV_HEADS, "head_dim": f.HeadWidth("head_dim", default=256)}
_WINDOWS = _LastIsGlobal(
    "local",
    f.Int("sliding_window", default=512),
    all_but_every(6),
    **_LOCAL,
    values="projected",
    position=f.Derived(_POSITIONS.read_local),
)


_LAST_HIDDEN = f.Computed(
    f.Bool("use_double_wide_mlp", default=False),
    lambda double, config: (2 if double else 1) * _FIELDS.hidden.read(config),
    lambda width, context: width == 2 * context.stack.layer_blocks()[0].feed_forward.hidden,  # type: ignore[union-attr]
)
"""The width of the feed-forwards of the last layers, which may be twice the others' width."""


class ReusingLayers(LayerVariation):
    """The last layers, which attend to the keys and values of the last layers of their kind before them."""

    name = "reusing"

    def __init__(self, count: f.Int, **differs: Any) -> None:
        self.count = count
        self.differs = {"attention": {"reuses_keys_values": True}, **differs}

    def read(self, config: Config, depth: int) -> list[bool]:
        count = self.count.read(config)
        if not 0 <= count < max(depth, 1):
            config.refuse(
                self.count.names[0], f"must be from 0 to {depth - 1}, and leave a layer before them"
            )
        if count and config.any("enable_moe_block"):
            config.refuse(self.count.names[0], "must be 0 with enable_moe_block: no published model has both")
        return [layer >= depth - count for layer in range(depth)]

    def holds(self, block: BlockParts, index: int) -> bool:
        return bool(getattr(block.attention, "reuses_keys_values", False))

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        if sorted(where) != list(where):
            raise UnfitError("attention.reuses_keys_values before a layer without it")
        return self.count.write(sum(where), context)


def per_layer_embedding(fields: LlamaFields) -> Field:
    """The embedding of the tokens for each layer; none if its width is 0."""
    width = f.Int("hidden_size_per_layer_input", default=256)
    rows = f.Computed(
        f.Int("vocab_size_per_layer_input", default=262144),
        lambda rows, config: None if rows == fields.vocab_size.read(config) else rows,
        lambda rows, context: rows or context.model.vocab_size,
    )
    part = {"width": width, "vocab_size": rows, "activation": ACTIVATION, "norm": fields.norm}
    return f.NoneIfZero(width, part)


_STORED, _OURS = "layers.{layer}.", "decoder.blocks.{layer}.per_layer_embedding"
PER_LAYER_RULES = (
    Rule("embed_tokens_per_layer.weight", (f"{_OURS}.table.weight",), Stacked(1), across="layer"),
    Rule("per_layer_model_projection.weight", (f"{_OURS}.projection.weight",), Stacked(0), across="layer"),
    same("per_layer_projection_norm.weight", "decoder.blocks.0.per_layer_embedding.projected_norm.weight"),
    *layer_weights(
        {
            "per_layer_input_gate": "per_layer_embedding.gate",
            "per_layer_projection": "per_layer_embedding.output",
            "post_per_layer_input_norm": "per_layer_embedding.norm",
        }
    ),
)
REUSED = tuple(f"layers.*.self_attn.{name}.weight" for name in ("k_proj", "v_proj", "k_norm", "v_norm"))
"""Tensors that layers without keys and values of their own may have in checkpoints."""

_HEAD = ("lm_head.weight",)

_MIXED = f.Bool("enable_moe_block", default=False)
_FEED_FORWARD = _FIELDS.feed_forward(activation=ACTIVATION)
_NO_NORM = {"kind": "none"}
_EXPERTS = {
    "kind": "mixture",
    "experts": f.Int("num_experts", default=REQUIRED),
    "top_k": f.Int("top_k_experts", default=REQUIRED),
    "expert": {**_FEED_FORWARD, "hidden": f.Int("moe_intermediate_size", default=REQUIRED)},
    "norm": _FIELDS.norm,
    "router": {
        "scores": "softmax",
        "normalize": True,
        "norm": _FIELDS.norm,
        "input_scale": "inverse_sqrt_d_model",
        "expert_scales": True,
    },
}
_SIDE_BY_SIDE = {
    "kind": "side_by_side",
    "branches": {
        "dense": {"norm": _FIELDS.norm, "feed_forward": _FEED_FORWARD, "output_norm": _FIELDS.norm},
        "experts": {"norm": _NO_NORM, "feed_forward": _EXPERTS, "output_norm": _FIELDS.norm},
    },
    "output_norm": _FIELDS.norm,
}
_BRANCHES = "feed_forward.branches"
_MIXTURE = f"{_BRANCHES}.experts.feed_forward"
_MIXTURE_RULES = (
    *layer_weights(
        {
            "pre_feedforward_layernorm": f"{_BRANCHES}.dense.norm",
            "post_feedforward_layernorm_1": f"{_BRANCHES}.dense.output_norm",
            "pre_feedforward_layernorm_2": f"{_MIXTURE}.norm",
            "post_feedforward_layernorm_2": f"{_BRANCHES}.experts.output_norm",
            "post_feedforward_layernorm": "feed_forward.output_norm",
            "router.proj": f"{_MIXTURE}.router",
            **{
                f"mlp.{part}_proj": f"{_BRANCHES}.dense.feed_forward.{part}"
                for part in ("gate", "up", "down")
            },
        }
    ),
    same(f"{_STORED}router.scale", f"{BLOCK}{_MIXTURE}.router_norm.weight"),
    same(f"{_STORED}router.per_expert_scale", f"{BLOCK}{_MIXTURE}.router.expert_scale"),
    Rule(
        f"{_STORED}experts.gate_up_proj",
        (f"{BLOCK}{_MIXTURE}.experts.gate.weight", f"{BLOCK}{_MIXTURE}.experts.up.weight"),
        Stacked(1),
    ),
    same(f"{_STORED}experts.down_proj", f"{BLOCK}{_MIXTURE}.experts.down.weight"),
)
GEMMA4 = Family(
    "gemma4_text",
    llama_tensors(
        "gemma4",
        *SANDWICH_NORMS,
        *PER_LAYER_RULES,
        *_MIXTURE_RULES,
        same(f"{_STORED}layer_scalar", "decoder.blocks.{layer}.output_scale.weight"),
        without=("layernorm",),
        optional=(*_HEAD, *REUSED),
    ),
    _FIELDS.body(
        kind="sandwich",
        attention={
            "kind": "grouped_query",
            "*": _GLOBAL,
            "dropout": f.Float("attention_dropout", default=0.0),
            "bias": f.Bias("attention_bias", default=False),
            "scale": 1.0,
            "qk_norm": _FIELDS.qk_norm,
            "value_norm": {**_FIELDS.norm, "weight": False},
            "values": f.Choice("attention_k_eq_v", {False: "projected", True: "keys"}, False),
        },
        feed_forward=f.Kinds(_MIXED, {True: _SIDE_BY_SIDE, False: _FEED_FORWARD}),
        feed_forward_norm=f.Derived(lambda config: {"kind": "none"} if _MIXED.read(config) else None),
        per_layer_embedding=per_layer_embedding(_FIELDS),
        output_scale=1.0,
        position=_POSITIONS,
        varies=(
            _WINDOWS,
            ReusingLayers(f.Int("num_kv_shared_layers", default=0), feed_forward={"hidden": _LAST_HIDDEN}),
        ),
        more={"embedding": {"scale": "sqrt_d_model"}},
    ),
    {
        "Gemma4ForCausalLM": language_modeling(tied=True, bias=False, softcap=f.Float(CAP)),
        "Gemma4TextModel": BODY,
    },
    fixed={
        "use_bidirectional_attention": (f.Derived(_of_images), "a token of text sees none after it"),
    },
    ignored=("num_experts", "top_k_experts", "moe_intermediate_size", "hidden_act", CAP),
)
FAMILIES = (GEMMA4,)
